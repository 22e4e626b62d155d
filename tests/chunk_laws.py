"""What must hold for any chunk result, whatever the strategy; and sources built by hand for the chunk tests."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import strategies as st

from raydex.ir.chunk import Chunk, ChunkResult
from raydex.ir.code import Symbol
from raydex.ir.document import Block
from raydex.ir.ids import block_id, code_symbol_id
from raydex.ir.locator import Locator
from raydex.kernels.chunk import ChunkOptions, ChunkSource
from raydex.kernels.tokens import Tokenizer

_PLAIN = ["valve", "pressure", "3.14", "v1.2", "e.g.", "Dr.", "hydraulic-systems", "end.", "(see", "no."]
_ODD = ["电池安全", "句子。", "Straße", "x" * 130, "a,b;c" * 30, "[SEP]", "\u200b", "naïve"]
WORDS = st.sampled_from(_PLAIN + _ODD)
TEXTS = st.lists(st.tuples(WORDS, st.sampled_from([" ", "\n", ". ", "  ", "\n\n", "\t"])), min_size=0, max_size=60).map(
    lambda pairs: "".join(word + gap for word, gap in pairs)
)


def make_blocks(shapes: list[tuple[str, str, int]]) -> list[Block]:
    """(kind, text, level) → blocks whose locators are ranges of their texts joined by one line end."""
    blocks: list[Block] = []
    at = 0
    for ordinal, (kind, text, level) in enumerate(shapes):
        metadata: dict = {}
        if kind == "heading":
            text = " ".join(text.split())
            metadata["level"] = level
        if kind == "table":
            rows = [line.split(" | ") for line in text.split("\n") if line.strip()]
            text = "\n".join(" | ".join(row) for row in rows)
            metadata = {
                "rows": [[{"text": cell, "header": k == 0} for cell in row] for k, row in enumerate(rows)],
                "header_rows": level % 2,
            }
        place = Locator(char=(at, at + len(text)), line=(1, 1 + text.count("\n")))
        blocks.append(Block(block_id("rec_t", "h", ordinal), kind, ordinal, text, place, metadata=metadata))
        at += len(text) + 1
    return blocks


def document(blocks: list[Block], title: str = "A title", path: str = "docs/page.md") -> ChunkSource:
    return ChunkSource("rec_t", "h", path, title, "text/markdown", blocks=blocks)


def plain_text(text: str, path: str = "notes/a.txt") -> ChunkSource:
    block = Block(
        block_id("rec_t", "h", 0),
        "paragraph",
        0,
        text,
        Locator(char=(0, len(text)), line=(1, 1 + text.count("\n", 0, max(0, len(text) - 1)))),
    )
    return ChunkSource("rec_t", "h", path, path.rpartition("/")[2], "text/plain", blocks=[block])


def code(text: str, ranges: list[tuple[str, str, int, int]], path: str = "pkg/mod.py") -> ChunkSource:
    """Source with the symbols (kind, qualified name, start, end) besides its module; the language is that of the path."""
    language = "typescript" if path.endswith(".ts") else "python"
    symbols = [_symbol("module", "pkg.mod", 0, len(text), text, path, language)]
    symbols += [_symbol(kind, name, start, end, text, path, language) for kind, name, start, end in ranges]
    block = Block(block_id("rec_t", "h", 0), "code", 0, text, Locator(char=(0, len(text)), line=(1, max(1, text.count("\n")))))
    return ChunkSource("rec_t", "h", path, path.rpartition("/")[2], f"text/x-{language}", language, blocks=[block], symbols=symbols)


def _symbol(kind: str, name: str, start: int, end: int, text: str, path: str, language: str) -> Symbol:
    return Symbol(
        symbol_id=code_symbol_id("w", "r", language, path, kind, name, str(start)),
        name=name.rpartition(".")[2],
        qualified_name=name,
        kind=kind,
        language=language,
        path=path,
        line=text.count("\n", 0, start) + 1,
        end_line=text.count("\n", 0, end) + 1,
        column=0,
        char_start=start,
        char_end=end,
        byte_start=start,
        byte_end=end,
    )


def leaves(result: ChunkResult) -> list[Chunk]:
    return [chunk for chunk in result.chunks if chunk.role == "leaf"]


def check_laws(result: ChunkResult, source: ChunkSource, options: ChunkOptions, tokenizer: Tokenizer) -> None:
    """Unique ids, order, limits, parents, and leaves that tile the text."""
    ids = [chunk.chunk_id for chunk in result.chunks]
    assert len(set(ids)) == len(ids)
    assert [chunk.ordinal for chunk in result.chunks] == list(range(len(ids)))
    place = {chunk.chunk_id: chunk for chunk in result.chunks}
    embedded = [chunk for chunk in result.chunks if chunk.embedding_text]
    for chunk, count in zip(embedded, tokenizer.exact([chunk.embedding_text for chunk in embedded]), strict=True):
        assert chunk.role == "leaf"
        assert count <= options.max_tokens
        assert chunk.token_count == count
    for chunk in result.chunks:
        assert chunk.role in ("leaf", "parent")
        assert chunk.locators
        assert chunk.boundary_reason in (("parent",) if chunk.role == "parent" else ("structure", "length", "end"))
        if chunk.parent_id is not None:
            assert place[chunk.parent_id].role == "parent"
            assert place[chunk.parent_id].ordinal < chunk.ordinal
        if chunk.role == "leaf":
            assert chunk.embedding_text or not chunk.content.strip()
            assert chunk.content.strip("\r\n").rstrip() in chunk.embedding_text or not chunk.embedding_text
    assert [chunk.boundary_reason for chunk in leaves(result)].count("end") == min(1, len(leaves(result)))
    for node in result.nodes:
        assert set(node.source_chunk_ids) <= set(ids)
    known = {node.node_id for node in result.nodes}
    assert all(edge.source in known and edge.target in known for edge in result.edges)


def check_spans(result: ChunkResult, source: ChunkSource) -> None:
    """The leaves' own ranges give back every block's text, in order, once."""
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    order: list[tuple[int, int]] = []
    for chunk in leaves(result):
        own = "".join(source.blocks[k].text[a:b] for k, a, b in chunk.metadata["spans"])
        shown = chunk.content[chunk.metadata.get("repeated_chars", 0) :]
        assert "".join(shown.split()) == "".join(own.split())
        for k, a, b in chunk.metadata["spans"]:
            spans[k].append((a, b))
            order.append((k, a))
    assert order == sorted(order)
    for block in source.blocks:
        if block.text and block.kind != "error":
            at = 0
            for a, b in spans[block.ordinal]:
                assert a == at
                at = b
            assert at == len(block.text)
