"""One source file and its symbols → a leaf for each function and method, a header leaf for what stands before, a parent for each class
(seed 3 §2).

The invariant: the leaves' character ranges tile the file exactly, in order. Symbols are the graph's nodes already, so none are made here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from raydex.ir.code import Symbol
from raydex.ir.locator import LineIndex, Locator
from raydex.kernels.chunk_outline import Draft, Outline, make_prefix, mark_end
from raydex.kernels.chunk_source import ChunkOptions, ChunkSource
from raydex.kernels.comments import comment_start
from raydex.kernels.split import line_ends, paragraph_ends, split
from raydex.kernels.summary import SUMMARY_CHARS, derive_summary, strip_comment
from raydex.kernels.tokens import Tokenizer

CONTAINERS = frozenset({"class", "struct", "interface", "trait", "enum", "namespace"})
DEFINITIONS = CONTAINERS | {"function", "method", "property", "macro", "type_alias"}
MAX_NESTING = 50

_MODIFIERS = re.compile(r"[ \t]*+(?:\w++[ \t]++)*+")


@dataclass(slots=True)
class Definition:
    """A symbol's range, its leading comment included, and the definitions inside it. The file itself is one without a symbol."""

    symbol: Symbol | None
    start: int
    end: int
    children: list[Definition] = field(default_factory=list)


@dataclass(slots=True)
class _File:
    """What every step below needs of one file."""

    source: ChunkSource
    options: ChunkOptions
    tokenizer: Tokenizer
    text: str
    lines: LineIndex
    module: Symbol | None


def chunk_code(source: ChunkSource, options: ChunkOptions, tokenizer: Tokenizer) -> Outline:
    """Strategy `structure` for source files. A file without definitions is cut by length, between lines."""
    text = source.blocks[0].text
    if not text:
        return Outline()
    module = next((symbol for symbol in source.symbols if symbol.kind in ("module", "package")), None)
    file = _File(source, options, tokenizer, text, LineIndex(text), module)
    outline = Outline(_cut(file, _find_definitions(file), len(text), [], 0))
    mark_end(outline.roots)
    return outline


def _find_definitions(file: _File) -> Definition:
    """The tree of definitions by range. Symbols that lie across another's end, or have its very range, stay plain text."""
    size = len(file.text)
    root = Definition(None, 0, size)
    stack = [root]
    usable = (s for s in file.source.symbols if s is not file.module and 0 <= s.char_start < s.char_end <= size)
    told = 0  # where the last variable or field ends: no comment reaches into it
    for symbol in sorted(usable, key=lambda s: (s.char_start, -s.char_end)):
        if symbol.kind not in DEFINITIONS:
            told = symbol.char_end
            continue
        while stack[-1].end <= symbol.char_start and len(stack) > 1:
            stack.pop()
        around = stack[-1]
        if symbol.char_end > around.end or (around.symbol is not None and symbol.char_start == around.symbol.char_start):
            continue
        floor = around.children[-1].end if around.children else around.symbol.char_start + 1 if around.symbol is not None else 0
        floor = max(floor, told) if told <= symbol.char_start else floor
        inner = Definition(symbol, _lead_start(file, symbol.char_start, floor), symbol.char_end)
        around.children.append(inner)
        stack.append(inner)
    return root


def _lead_start(file: _File, start: int, floor: int) -> int:
    """Start of the line, modifiers such as `export` included, and of the comment right above; never before `floor`."""
    line = file.lines.line_of(start)
    at = file.lines.start_of(line)
    if at < floor or not _MODIFIERS.fullmatch(file.text, at, start):
        return start
    return comment_start(file.text, file.lines, line, floor, file.source.language)


def _cut(file: _File, definition: Definition, end: int, names: list[str], depth: int) -> list[Draft]:
    """Drafts that tile `definition.start` to `end`: one leaf, or one parent above several drafts."""
    start = definition.start
    symbol = definition.symbol
    whole = file.options.max_tokens - file.tokenizer.special_tokens
    divide = bool(definition.children) and depth < MAX_NESTING
    if divide and symbol is not None and symbol.kind not in CONTAINERS:
        divide = end - start > file.options.max_chars or file.tokenizer.count(file.text[start:end]) > whole
    drafts: list[Draft] = []
    if divide:
        children = definition.children
        if file.text[start : children[0].start].strip():
            drafts.extend(_leaves(file, symbol, start, children[0].start, names))
            at = children[0].start
        else:
            at = start
        for k, child in enumerate(children):
            child.start = at
            following = children[k + 1].start if k + 1 < len(children) else end
            stop = _child_end(file, child.end, following)
            inner = [*names, child.symbol.name] if child.symbol is not None else names
            drafts.extend(_cut(file, child, stop, inner, depth + 1))
            if stop < following:
                drafts.extend(_leaves(file, symbol, stop, following, names))
            at = following
    else:
        drafts = _leaves(file, symbol, start, end, names)
    if len(drafts) == 1:
        return drafts
    return [_parent(file, symbol, start, end, names, drafts)]


def _child_end(file: _File, end: int, following: int) -> int:
    """Where a definition's leaf ends: at the next one, when little stands between; else behind its own last line."""
    gap = file.text[end:following]
    if not gap.strip() or (len(gap) <= 64 * file.options.min_tokens and file.tokenizer.count(gap) < file.options.min_tokens):
        return following
    ink = len(gap) - len(gap.lstrip())
    newline = gap.rfind("\n", 0, ink)
    return end + newline + 1 if newline >= 0 else end


def _leaves(file: _File, symbol: Symbol | None, start: int, end: int, names: list[str]) -> list[Draft]:
    """The range as one leaf, or as several cut between lines."""
    options, tokenizer = file.options, file.tokenizer
    text = file.text[start:end]
    whole = options.max_tokens - tokenizer.special_tokens
    prefix = make_prefix(file.source.path, [".".join(names)] if names else [], options, tokenizer)
    tokens = tokenizer.count(text) if len(text) <= options.max_chars else whole + 1
    if tokens <= whole:
        ranges = [(0, len(text), tokens, False)]
    else:
        pieces = split(
            text,
            whole - prefix.reserved,
            tokenizer,
            (paragraph_ends, line_ends),
            max_chars=options.max_chars,
            least=options.min_tokens,
        )
        ranges = [(piece.start, piece.end, piece.tokens, piece.end < len(text)) for piece in pieces]
    title, entity, told = _title(file, symbol), _entity(file, symbol), _told_summary(file, symbol, start)
    drafts: list[Draft] = []
    for a, b, count, cut in ranges:
        place = _place(file, start + a, start + b)
        reason = "length" if cut else "structure"
        summary = told or _first_sentence(file, text[a:b])
        metadata = _metadata(file, symbol, place)
        drafts.append(Draft("leaf", title, text[a:b], "code", list(names), [place], reason, entity, summary, count, prefix, metadata))
    return drafts


def _parent(file: _File, symbol: Symbol | None, start: int, end: int, names: list[str], drafts: list[Draft]) -> Draft:
    content = file.text[start:end]
    place = _place(file, start, end)
    metadata = _metadata(file, symbol, place)
    if len(content) > file.options.parent_chars:
        metadata |= {"content_cut_at": file.options.parent_chars, "content_chars": len(content)}
        content = content[: file.options.parent_chars]
    summary = _told_summary(file, symbol, start) or _first_sentence(file, content)
    title, entity = _title(file, symbol), _entity(file, symbol)
    return Draft("parent", title, content, "code", list(names), [place], "parent", entity, summary, metadata=metadata, children=drafts)


def _title(file: _File, symbol: Symbol | None) -> str:
    return symbol.qualified_name if symbol is not None else file.source.file_name


def _entity(file: _File, symbol: Symbol | None) -> str:
    owner = symbol or file.module
    return owner.symbol_id if owner is not None else file.source.record_id


def _place(file: _File, start: int, end: int) -> Locator:
    first = file.lines.line_of(start)
    return Locator(char=(start, end), line=(first, max(first, file.lines.line_of(max(start, end - 1)))))


def _told_summary(file: _File, symbol: Symbol | None, start: int) -> str:
    """Comment before the symbol, else its docstring; empty where neither is (seed 3 §5.8)."""
    sentences = file.options.summary_sentences
    if symbol is not None and start < symbol.char_start:
        lead = file.text[start : min(symbol.char_start, start + 4 * SUMMARY_CHARS)]
        comment = strip_comment(_comment_only(lead) if start + len(lead) == symbol.char_start else lead)
        if comment:
            return derive_summary(comment, sentences)
    owner = symbol or file.module
    return derive_summary(owner.docstring, sentences) if owner is not None else ""


def _first_sentence(file: _File, content: str) -> str:
    return derive_summary(content, min(1, file.options.summary_sentences))


def _comment_only(lead: str) -> str:
    """What stands before a definition without modifiers on its own line."""
    return lead[: max(lead.rfind("\n"), lead.rfind("\r")) + 1]


def _metadata(file: _File, symbol: Symbol | None, place: Locator) -> dict[str, Any]:
    owner = symbol or file.module
    lines = place.line or (1, 1)
    metadata: dict[str, Any] = {"symbol_type": owner.kind if owner is not None else "module", "start_line": lines[0], "end_line": lines[1]}
    if owner is not None:
        metadata["visibility"] = owner.visibility
        named = {"signature": owner.signature, "receiver": owner.receiver, "package": owner.package}
        metadata |= {name: value for name, value in named.items() if value}
    return metadata
