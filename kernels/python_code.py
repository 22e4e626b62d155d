"""Python source → CodeIR by the standard `ast`; a file that does not parse goes through tree-sitter for its good symbols (contracts 27).

The invariant: text is decoded as Python itself would (PEP 263); whatever the tree, ids are those of `raydex.ir.ids` and hold no line.
"""

from __future__ import annotations

import ast
import codecs
import io
import tokenize
import warnings as python_warnings

from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.kernels import python_rules as rules
from raydex.kernels.code_calls import resolve_calls
from raydex.kernels.code_common import CodeFile, collector_paused
from raydex.kernels.code_text import SourceText
from raydex.kernels.python_ast import walk_tree
from raydex.kernels.request import ParseRequest

PARSER = "python-ast"
FALLBACK_PARSER = "tree-sitter-python"
PARSER_VERSION = "2"
# encodings that a cookie may name, by their codecs' names: every one holds ASCII as it is and keeps no state, so that offsets into the
# bytes can be told from a part of the text (`punycode`, `utf-7`, `unicode_escape`, `hex` … are codecs, too)
_SOURCE_CODECS = frozenset(
    (
        *("ascii", "utf-8", "utf-8-sig", "big5", "big5hkscs", "gb2312", "gbk", "gb18030", "johab", "euc_kr", "cp949", "cp950", "cp932"),
        *("euc_jp", "shift_jis", "koi8-r", "koi8-u", "koi8-t"),
        *("hp-roman8", "kz1048", "ptcp154", "tis-620", "cp437", "cp720", "cp737", "cp775", "cp850", "cp852", "cp855", "cp856", "cp857"),
        *("cp858", "cp860", "cp861", "cp862", "cp863", "cp865", "cp866", "cp869", "cp874", "cp1006", "cp1125"),
        *(f"cp125{n}" for n in range(9)),
        *(f"iso8859-{n}" for n in range(1, 17) if n != 12),
        *(f"mac-{name}" for name in ("croatian", "cyrillic", "farsi", "greek", "iceland", "latin2", "roman", "romanian", "turkish")),
    )
)


def parse_python(request: ParseRequest) -> ParsedFile:
    """CodeIR of one Python file. Raises InputError: syntax (null bytes), invalid_input (no text), too_many_symbols, too_deep."""
    with collector_paused():
        return _parse_file(request)


def _parse_file(request: ParseRequest) -> ParsedFile:
    text, encoding, warnings = decode_python(request.data)
    if "\0" in text:
        raise InputError("the source holds null characters", reject_class="syntax", place=f"character {text.index(chr(0))}")
    source = SourceText(text, request.data, encoding)
    package = rules.module_path(request.path)
    file = CodeFile(request, source, "python", package, package.rpartition(".")[2])
    fault = ""
    try:
        tree = _parse(text)
    except SyntaxError as error:
        fault = f"line {error.lineno or 0}: {error.msg}"
    except (RecursionError, MemoryError, ValueError) as error:
        fault = f"the standard parser gave up: {type(error).__name__}"
    if fault:
        from raydex.kernels.python_treesitter import walk_python

        facts = walk_python(file)
    else:
        facts = walk_tree(file, tree)
        file.module.docstring = rules.docstring(ast.get_docstring(tree, clean=False) or "")
    resolve_calls(file, facts)
    parsed = file.finish(FALLBACK_PARSER if fault else PARSER, PARSER_VERSION, [*warnings, *(["parse_error"] if fault else [])])
    if fault:
        parsed.add_event("parse", "warning", "parse_error", fault)
    return parsed


def _parse(text: str) -> ast.Module:
    """Warnings about the source's own escapes and comparisons are its author's business."""
    with python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore")
        return ast.parse(text)


def decode_python(data: bytes) -> tuple[str, str, list[str]]:
    """(text without mark, codec, warnings): the codec that the file declares (PEP 263), else UTF-8; a file that breaks it, or declares
    what is no source encoding, is guessed."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        if codecs.lookup(encoding).name not in _SOURCE_CODECS:
            raise LookupError(f"{encoding} is no encoding of source text")
        text = data.decode(encoding)
    except (SyntaxError, UnicodeError, LookupError):
        from raydex.kernels.decode import decode

        decoded = decode(data)
        return decoded.text, decoded.encoding, decoded.warnings
    return text.removeprefix("\ufeff"), "utf-8" if encoding == "utf-8-sig" else encoding, []
