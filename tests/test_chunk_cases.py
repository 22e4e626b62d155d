"""Known faults of chunkers: repeated text, headings longer than the limit, tables without column names, text beyond the model's reach."""

from __future__ import annotations

import pytest
from chunk_laws import check_laws, leaves
from shared_cases import CASES, needs_cases

from raydex.kernels.chunk import STRATEGIES, ChunkOptions, ChunkSource, chunk
from raydex.kernels.parse import parse
from raydex.kernels.request import ParseRequest
from raydex.kernels.tokens import load_tokenizer

TOKENIZER = load_tokenizer()
REPEATED = "Check the seal. " * 40 + "\n\n" + "Check the seal. " * 3
PARTS = [f"| part-{k} | {5 * k} bar | check {k} |\n" for k in range(1, 41)]
DEEP = (
    f"# {'Very long chapter title about pumps ' * 10}\n\n## {'Second long title ' * 15}\n\nShort body that must not be lost.\n\n"
    f"| Part | Limit | Note |\n|---|---|---|\n{''.join(PARTS)}"
)
LONG = "filler word " * 600 + "The spare key is in locker nineteen. " + "filler word " * 20


def case(name: str, file: str, own: str) -> list:
    shared = (CASES / name / file).read_bytes() if CASES.is_dir() else b""
    return [own.encode(), pytest.param(shared, marks=needs_cases)]


def source(data: bytes, path: str, media_type: str) -> ChunkSource:
    parsed = parse(ParseRequest("rec_c", "h", path, media_type, data))
    assert parsed.document is not None, parsed.rejects
    return ChunkSource("rec_c", "h", path, parsed.document.title, media_type, parsed.document.language, "", parsed.blocks, parsed.symbols)


@pytest.mark.parametrize("data", case("b41-chunk-repeats", "repeat.txt", REPEATED))
@pytest.mark.parametrize("max_tokens", [40, 64, 128])
@pytest.mark.parametrize("overlap", [0, 10])
@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_repeated_text(data: bytes, max_tokens: int, overlap: int, strategy: str) -> None:
    text = data.decode()
    document = source(data, "repeat.txt", "text/plain")
    options = ChunkOptions(strategy, max_tokens=max_tokens, overlap=overlap)
    result = chunk(document, options, TOKENIZER)
    check_laws(result, document, options, TOKENIZER)
    found = leaves(result)
    assert len(found) > 1
    starts = []
    covered = 0
    for one in found:
        slices = [place.slice_text(text) or "" for place in one.locators]
        assert "".join("".join(slices).split()) == "".join(one.content.split())
        start, end = one.locators[0].char[0], one.locators[-1].char[1]
        starts.append(start)
        assert not text[covered:start].strip()
        covered = end
    assert not text[covered:].strip()
    assert starts == sorted(set(starts))
    assert [c.chunk_id for c in chunk(document, options, TOKENIZER).chunks] == [c.chunk_id for c in result.chunks]


@pytest.mark.parametrize("data", case("b43-chunk-budget", "deep.md", DEEP))
def test_headings_over_the_limit_and_long_tables(data: bytes) -> None:
    document = source(data, "deep.md", "text/markdown")
    options = ChunkOptions(max_tokens=64)
    result = chunk(document, options, TOKENIZER)
    check_laws(result, document, options, TOKENIZER)
    found = leaves(result)
    assert any("Short body that must not be lost." in c.content and "Short body that must not be lost." in c.embedding_text for c in found)
    tables = [c for c in found if "part-" in c.content]
    rows = [line for c in tables for line in c.content.splitlines() if "part-" in line]
    assert rows == [f"part-{k} | {5 * k} bar | check {k}" for k in range(1, 41)]
    assert all(name in c.content and name in c.embedding_text for c in tables for name in ("Part", "Limit", "Note"))
    assert all(c.prefix_shortened for c in found)


@pytest.mark.parametrize("data", case("b44-embed-truncation", "long.txt", LONG))
@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_no_text_is_beyond_the_models_reach(data: bytes, strategy: str) -> None:
    document = source(data, "long.txt", "text/plain")
    found = leaves(chunk(document, ChunkOptions(strategy), TOKENIZER))
    assert max(TOKENIZER.exact([c.embedding_text for c in found])) <= 256
    assert "".join("".join(c.content.split()) for c in found) == "".join(data.decode().split())
    assert sum("nineteen" in c.embedding_text for c in found) == 1
