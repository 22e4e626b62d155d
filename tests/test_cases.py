"""What `expected.md` of the shared cases says beyond what the parsers' own tests assert: chunks, children, words, places."""

from __future__ import annotations

import re
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from document_files import children, parse_bytes
from shared_cases import case

from raydex.ir.chunk import Chunk
from raydex.ir.parsed import ParsedFile
from raydex.kernels.chunk import ChunkOptions, ChunkSource, chunk
from raydex.kernels.detect import detect_media_type
from raydex.kernels.tokens import load_tokenizer

TOKENIZER = load_tokenizer()


def parsed(name: str) -> ParsedFile:
    """The file of a case, of the type that its content and name tell."""
    path = case(name)
    data = path.read_bytes()
    return parse_bytes(data, detect_media_type(data[:65_536], path.name), path.name)


def chunks(found: ParsedFile, max_tokens: int = 256) -> list[Chunk]:
    assert found.document is not None
    head = found.document
    source = ChunkSource("rec_c", "h", found.path, head.title, found.media_type, head.language, "", found.blocks, found.symbols)
    return chunk(source, ChunkOptions(max_tokens=max_tokens), TOKENIZER).chunks


def leaves(found: list[Chunk]) -> list[Chunk]:
    inner = {one.parent_id for one in found}
    return [one for one in found if one.chunk_id not in inner]


def test_b01_each_word_stands_once() -> None:
    page = case("b01-html-table-in-list/pump.html").read_text()
    body = re.sub(r"<title>.*?</title>|<[^>]*>", " ", page, flags=re.DOTALL)
    shown = " ".join(block.text for block in parsed("b01-html-table-in-list/pump.html").blocks)
    assert Counter(re.findall(r"\w+", shown)) == Counter(re.findall(r"\w+", body))


def test_b05_paths_of_headings_with_a_slash_differ_in_every_form() -> None:
    found = parsed("b05-md-bom-tab-slash/build.md")
    paths = {block.text: block.section_path for block in found.blocks}
    one, other = paths["Call us."], paths["Other."]
    assert one != other and " > ".join(one) != " > ".join(other)
    made = {one.content: one for one in leaves(chunks(found))}
    call, rest = (next(value for text, value in made.items() if word in text) for word in ("Call us.", "Other."))
    assert call.section_path == ["Build", "24/7 Support"] and rest.section_path == ["Build", "Support", "24"]
    assert call.chunk_id != rest.chunk_id and call.embedding_text != rest.embedding_text


def test_b06_what_was_deleted_is_in_no_chunk() -> None:
    made = chunks(parsed("b06-docx-tracked-changes/limits.docx"))
    text = "\n".join(f"{one.content}\n{one.embedding_text}" for one in made)
    assert made and "40" not in text and "The limit is 55 km/h." in text
    assert all(one.content.count("Wipers stay on.") <= 1 for one in made)


def test_b08_bullets_stand_below_their_heading() -> None:
    texts = [block.text for block in parsed("b08-docx-outline-numbers/system.docx").blocks]
    at = [texts.index(text) for text in ("System", "Brakes", "front disc", "rear drum", "Lights", "low beam", "Service", "Plan", "Yearly.")]
    assert at == sorted(at)


def test_b09_merged_cells_are_said_once_in_a_chunk() -> None:
    for one in chunks(parsed("b09-docx-merged-cells/axle.docx")):
        assert (one.content.count("Axle load"), one.content.count("both rows")) == (1, 1)


def test_b13_a_far_cell_takes_no_memory() -> None:
    data = case("b13-xlsx-far-cell/far.xlsx").read_bytes()
    media_type = detect_media_type(data, "far.xlsx")
    parse_bytes(data, media_type, "far.xlsx")
    tracemalloc.start()
    try:
        assert len(parse_bytes(data, media_type, "far.xlsx").blocks) == 2
        assert tracemalloc.get_traced_memory()[1] < 300_000_000
    finally:
        tracemalloc.stop()


def test_b19_a_word_with_a_ligature_is_found_and_the_hyphen_kept() -> None:
    found = parsed("b19-pdf-ligature/ligature.pdf")
    assert [one.content for one in leaves(chunks(found)) if "classifies" in one.content]
    stored = "".join(f"{block.text}{block.metadata}" for block in found.blocks)
    assert "\x00" not in stored and "\ufffe" not in stored


def test_b21_the_whole_sentence_and_every_trace() -> None:
    found = parsed("b21-adf-inline-atoms/OPS-41.json")
    described = [block for block in found.blocks if block.locator.field == "description"]
    texts = [block.text for block in described]
    assert texts[1] == "Asked @operator-7 to close https://example.org/x/OPS-40 by 2026-03-01 BLOCKED \u26a0"
    assert [link.href for link in described[1].links] == ["https://example.org/x/OPS-40"]
    assert "https://example.org/log?a=1&b=2" in [link.href for block in described for link in block.links]
    assert "&lt;" not in "".join(texts) and "if a:\n    b()\n" in texts
    assert [event.name for event in found.events if event.message] == ["unknown_node"]


def test_b23_children_of_children_and_nothing_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = parsed("b23-eml-signed-nested/report.eml")
    (inner,) = children(found)
    assert inner.document is not None and inner.document.metadata["message_id"] == "inner@example.org"
    assert inner.document.title == "Inner report"
    (leak,) = children(inner)
    assert leak.media_type == "text/csv" and sum(len(block.metadata["cells"]) for block in leak.blocks) == 1
    whole = "".join(block.text for one in (found, inner, leak) for block in one.blocks)
    assert "SIGNATURE" not in whole and not list(tmp_path.iterdir())


def test_b26_the_mail_is_not_empty() -> None:
    found = parsed("b26-msg-html-only/weekly.msg")
    assert found.document is not None and found.document.text_state == "native"
    (table,) = [block for block in found.blocks if block.kind == "table"]
    assert [[cell["text"] for cell in row] for row in table.metadata["rows"]] == [["Line 4", "stopped"]]


def test_b27_rows_count_records() -> None:
    (block,) = parsed("b27-csv-dialects/bom.csv").blocks
    assert block.locator.row == 1 and [row[0] for row in block.metadata["cells"]].index("7") + block.locator.row == 2
    assert parsed("b27-csv-dialects/trade.csv").rejects == []
    assert parsed("b27-csv-dialects/runs.csv").blocks[0].metadata["columns"] == ["run", "pass", "hours", "lots"]


@pytest.mark.parametrize("max_tokens", [40, 64, 128, 256])
def test_b29_every_key_is_in_a_chunk(max_tokens: int) -> None:
    text = "\n".join(one.content for one in leaves(chunks(parsed("b29-json-empty-and-list/depot.json"), max_tokens)))
    names = [*(f"bay-{number}" for number in range(1, 23)), *(f"gate-{number}" for number in range(1, 5))]
    assert [name for name in names if f'"{name}"' not in text] == []
    listed = parsed("b29-json-empty-and-list/list.json")
    written = case("b29-json-empty-and-list/list.json").read_text()  # 1.10 itself is in the golden file of JSON
    assert all(block.text in written for block in listed.blocks) and len(listed.blocks) == 5
    assert "12345678901234567890" in "".join(one.content for one in leaves(chunks(listed, max_tokens)))


def test_b30_no_tag_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parsed("b30-yaml-traps/deploy.yaml").document is not None
    assert not list(tmp_path.iterdir())


def test_b31_namespaces_are_kept() -> None:
    found = parsed("b31-xml-mixed/notice.xml")
    prefixes = {prefix for block in found.blocks for prefix in re.findall(r"/(\w+):", block.locator.xpath or "")}
    assert found.document is not None
    namespaces = found.document.metadata["namespaces"]
    assert prefixes and prefixes <= set(namespaces) and all(namespaces.values())


def test_b45_one_bad_picture_costs_itself() -> None:
    folder = case("b45-caption-batch-poison")
    found = {path.name: parsed(f"{folder.name}/{path.name}") for path in sorted(folder.glob("*.png"))}
    assert {name: [reject.reject_class for reject in one.rejects] for name, one in found.items()} == {
        "a_good.png": [],
        "b_truncated.png": ["invalid_input"],
        "c_empty.png": ["empty"],
        "d_one_pixel.png": [],
        "e_text.png": ["invalid_input"],
        "f_good.png": [],
    }
    # what only calls itself a picture is text: it has no asset that could be captioned
    assert {name for name, one in found.items() if one.assets} == {"a_good.png", "d_one_pixel.png", "f_good.png"}
