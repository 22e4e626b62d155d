"""Chunks of decks, sheets, tickets, mails and images: sections without headings, carried headers, comments, what images show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chunk_laws import check_laws, check_spans, document, leaves
from document_files import CORPUS, children, parse_bytes
from hypothesis import given, settings
from hypothesis import strategies as st

from raydex.ir.chunk import Chunk, ChunkResult
from raydex.ir.document import Block
from raydex.ir.ids import content_hash
from raydex.ir.locator import Locator
from raydex.ir.parsed import ParsedFile
from raydex.kernels.chunk import STRATEGIES, ChunkOptions, ChunkSource, chunk
from raydex.kernels.chunk_document import text_blocks, with_seen_text
from raydex.kernels.chunk_sections import find_sections
from raydex.kernels.detect import detect_media_type
from raydex.kernels.tables import make_cell
from raydex.kernels.tokens import load_tokenizer

TOKENIZER = load_tokenizer()


def blocks_of(*shapes: tuple[str, str, list[str]], **places: Any) -> list[Block]:
    """(kind, text, section path) → blocks of a deck."""
    return [
        Block(f"b{at}", kind, at, text, Locator(slide=at + 1), path, metadata={"level": len(path)} if kind == "heading" else {})
        for at, (kind, text, path) in enumerate(shapes)
    ]


def shown(result: ChunkResult) -> list[tuple[str, str, str]]:
    return [(c.role, c.title, c.content) for c in result.chunks]


def chunks_of(blocks: list[Block], **options: Any) -> ChunkResult:
    source = document(blocks, title="Deck", path="a.pptx")
    result = chunk(source, ChunkOptions(**options), TOKENIZER)
    check_laws(result, source, ChunkOptions(**options), TOKENIZER)
    seen = document(text_blocks(source))
    for at, block in enumerate(seen.blocks):
        block.ordinal = at
    check_spans(result, seen)
    return result


def test_an_untitled_slide_is_no_part_of_the_titled_one_before_it() -> None:
    blocks = blocks_of(
        ("heading", "Loop", ["Loop"]),
        ("paragraph", "Pump A.", ["Loop"]),
        ("paragraph", "Of no title.", ["Slide 2"]),
        ("heading", "Inside", ["Slide 2", "Inside"]),
        ("paragraph", "Deeper.", ["Slide 2", "Inside"]),
        ("paragraph", "Of none either.", ["Slide 3"]),
        ("heading", "End", ["End"]),
        ("paragraph", "Bye.", ["End"]),
    )
    result = chunks_of(blocks)
    assert [(c.title, c.section_path, c.content) for c in leaves(result)] == [
        ("Loop", ["Loop"], "Loop\n\nPump A."),
        ("Slide 2", ["Slide 2"], "Of no title."),
        ("Inside", ["Slide 2", "Inside"], "Inside\n\nDeeper."),
        ("Slide 3", ["Slide 3"], "Of none either."),
        ("End", ["End"], "End\n\nBye."),
    ]
    names = {node.node_id: node for node in result.nodes}
    assert [(names[e.source].name, names[e.target].name) for e in result.edges] == [
        ("Deck", "Loop"),
        ("Deck", "Slide 2"),
        ("Slide 2", "Inside"),
        ("Deck", "Slide 3"),
        ("Deck", "End"),
    ]
    untitled = next(edge for edge in result.edges if names[edge.target].name == "Slide 2")
    assert (str(untitled.locator), untitled.excerpt_hash) == ("slide=3", content_hash(b"Of no title."))
    assert names[untitled.target].properties == {}


def test_text_behind_a_subsection_goes_back_to_its_section() -> None:
    blocks = blocks_of(
        ("heading", "A", ["A"]),
        ("heading", "B", ["A", "B"]),
        ("paragraph", "In B.", ["A", "B"]),
        ("paragraph", "In A again.", ["A"]),
        ("paragraph", "Before all.", []),
        ("heading", "C", ["C"]),
        ("paragraph", "In C.", ["C"]),
    )
    result = chunks_of(blocks)
    assert [(c.section_path, c.content) for c in leaves(result)] == [
        (["A"], "A"),
        (["A", "B"], "B\n\nIn B."),
        (["A"], "In A again."),
        ([], "Before all."),
        (["C"], "C\n\nIn C."),
    ]
    place = {c.chunk_id: c for c in result.chunks}
    again = next(c for c in leaves(result) if c.content == "In A again.")
    assert again.parent_id is not None and place[again.parent_id].title == "A"
    assert [node.name for node in result.nodes] == ["Deck", "A", "B", "C"]
    assert again.chunk_id in next(node for node in result.nodes if node.name == "A").source_chunk_ids


def test_data_without_headings_stays_together() -> None:
    blocks = blocks_of(*[("code", f'"v": {at}', ["users", f"[{at}]"]) for at in range(4)])
    assert len(find_sections("r", blocks)) == 1
    assert len(leaves(chunks_of(blocks))) == 1


PATHS = st.lists(st.sampled_from("AB"), max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["heading", "paragraph"]), st.sampled_from("ABC"), PATHS), max_size=12))
@settings(max_examples=300)
def test_any_paths_give_sections_that_tile(shapes: list[tuple[str, str, list[str]]]) -> None:
    blocks = blocks_of(*[(kind, text, [*path, text] if kind == "heading" else path) for kind, text, path in shapes])
    sections = find_sections("r", blocks)
    at = 0
    for section in sections:
        assert section.start == at and section.start <= section.own_end <= section.end
        at = section.own_end
        if section.parent >= 0:
            above = sections[section.parent]
            assert above.start <= section.start and section.end <= above.end and not above.rest
    assert at == len(blocks)
    assert len({s.node_id for s in sections if not s.rest}) == sum(not s.rest for s in sections)
    chunks_of(blocks)


def sheet_table(rows: int, start: int, header: list[list[str]] | None) -> Block:
    cells = [[f"part-{k}", f"{k} bar", "hydraulic valve check"] for k in range(start, start + rows)]
    text = "\n".join(" | ".join(row) for row in cells)
    about: dict[str, Any] = {"rows": [[make_cell(c) for c in row] for row in cells], "header_rows": 0}
    if header is not None:
        about |= {"continued": True, "header": header}
    return Block("b", "table", 0, text, Locator(sheet="S", cells=f"A{start + 1}:C{start + rows}"), ["S"], metadata=about)


@pytest.mark.parametrize("rows", [2, 40])
def test_a_table_that_goes_on_shows_its_header_in_each_chunk(rows: int) -> None:
    header = [["Part", "Pressure", "Work"], ["", "bar", ""]]
    blocks = [sheet_table(rows, 1, None), sheet_table(rows, rows + 1, header), *blocks_of(("paragraph", "Done.", ["S"]))]
    for at, block in enumerate(blocks):
        block.ordinal = at
    found = leaves(chunks_of(blocks, max_tokens=64))
    later = [c for c in found if "valve" in c.content and c.metadata["spans"][0][0] == 1]
    assert later
    for one in later:
        assert one.content.startswith("Part | Pressure | Work\n | bar | \npart-")
        assert one.content[: one.metadata["repeated_chars"]].count("\n") == 2
    assert all("Part |" not in c.content for c in found if c not in later)


def test_a_header_too_long_to_carry_is_left_out() -> None:
    block = sheet_table(30, 1, [["word " * 60]])
    assert all("repeated_chars" not in c.metadata for c in leaves(chunks_of([block], max_tokens=64)))


def test_rows_of_a_csv_file_stand_under_their_columns() -> None:
    data = "name;pressure\n" + "".join(f"valve-{k};{k}\n" for k in range(400))
    parsed = parse_bytes(data, "text/csv", path="a.csv")
    found = leaves(chunk(source_of(parsed), ChunkOptions(max_tokens=64), TOKENIZER))
    assert len(found) > 10
    assert all(one.content.startswith("name;pressure\nvalve-") and "name;" in one.embedding_text for one in found)


def test_what_an_image_shows_is_its_text() -> None:
    (image,) = blocks_of(("image", "a pump", []))
    image.metadata = {"ocr": "STOP\nVALVE 4", "caption": "a pump"}
    assert with_seen_text(image).text == "a pump\nSTOP\nVALVE 4"
    image.metadata |= {"caption": "A red pump."}
    (one,) = leaves(chunks_of([image]))
    assert (one.kind, one.content) == ("image", "a pump\nSTOP\nVALVE 4\nA red pump.")
    image.text = ""
    assert with_seen_text(image).text == "STOP\nVALVE 4\nA red pump."
    image.metadata = {}
    assert chunks_of([image]).chunks == []


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_long_text_of_an_image_is_cut(strategy: str) -> None:
    (image,) = blocks_of(("image", "plan", []))
    image.metadata = {"ocr": "A line that was read. " * 80}
    found = leaves(chunks_of([image], max_tokens=64, strategy=strategy))
    assert len(found) > 4 and {one.kind for one in found} == {"image"}


ISSUE = {
    "key": "OPS-7",
    "fields": {
        "summary": "Pump stops",
        "description": "The system shall restart.",
        "comment": {
            "comments": [
                {"id": "1", "author": {"displayName": "Ann"}, "created": "2024-01-01", "body": "Seen today.\n\n* first\n* second"},
                {"id": "2", "author": {"displayName": "Bo"}, "created": "2024-01-02", "body": "* third\n* fourth"},
            ]
        },
        "worklog": {"worklogs": [{"id": "5", "author": {"displayName": "Bo"}, "started": "2024-01-03", "timeSpentSeconds": 60}]},
    },
    "changelog": {
        "histories": [{"id": "9", "created": "2024-01-02", "items": [{"field": "status", "fromString": "Open", "toString": "Done"}]}]
    },
    "remotelinks": [{"id": 3, "object": {"title": "Spec", "url": "https://example.org/spec"}}],
}


def test_a_change_is_told_from_a_requirement_and_comments_from_each_other() -> None:
    parsed = parse_bytes(json.dumps(ISSUE), "application/json", path="OPS-7.json")
    found = {c.content: c for c in leaves(chunk(source_of(parsed), ChunkOptions(), TOKENIZER))}

    def one(text: str) -> Chunk:
        return next(c for content, c in found.items() if text in content)

    change = one("status changed from Open to Done")
    assert (change.kind, change.section_path, change.locators[-1].field) == ("changelog", ["Changelog"], "changelog")
    assert (one("shall restart").kind, one("shall restart").locators[-1].field) == ("section", "description")
    assert (one("logged").kind, one("Spec").kind) == ("worklog", "link")
    first, second = one("Seen today."), one("third")
    assert first is not second and "second" in first.content and "fourth" in second.content
    assert {name: first.metadata[name] for name in ("comment_id", "author", "created")} == {
        "comment_id": "1",
        "author": "Ann",
        "created": "2024-01-01",
    }
    assert (second.kind, second.metadata["author"], second.section_path) == ("comment", "Bo", ["Comments"])


HEAD = "Subject: Pump\nFrom: a@x.org\nTo: b@x.org\n"


@pytest.mark.parametrize(
    ("mail", "leaves_of"),
    [
        (
            "Fixed.\n\n-- \nAnn\n\nOn Mon, 1 Jan 2024, B wrote:\n> Leaks.\n>\n> Again.\n",
            [["Fixed.", "Ann"], ["wrote:", "Leaks.", "Again."]],
        ),
        ("> Tuesday?\n\nYes.\n\n> Where?\n\nHere.\n", [["Tuesday?", "Yes.", "Where?", "Here."]]),
        ("> Tuesday?\n\nYes.\n\n> Where?\n\n> When?\n", [["Tuesday?", "Yes."], ["Where?", "When?"]]),
        ("> Only\n\n> quoted.\n", [["Only", "quoted."]]),
        ("Fixed.\n\n-- \nAnn\n", [["Fixed.", "Ann"]]),
        ("Fixed.\n\n> Leaks.\n\n-- \nAnn\n", [["Fixed."], ["Leaks.", "Ann"]]),
    ],
)
def test_the_mails_below_a_mail_are_chunked_apart(mail: str, leaves_of: list[list[str]]) -> None:
    source = source_of(parse_bytes(HEAD + "\n" + mail, "message/rfc822", "m.eml"))
    result = chunk(source, ChunkOptions(max_tokens=400), TOKENIZER)
    check_laws(result, source, ChunkOptions(max_tokens=400), TOKENIZER)
    found = [one.content for one in leaves(result)]
    words = [word for some in leaves_of for word in some]
    assert [[word for word in words if word in content] for content in found] == leaves_of


def test_quotes_of_a_page_stay_with_its_text() -> None:
    source = source_of(parse_bytes("<p>He said:<blockquote>Never.</blockquote>", "text/html", "p.html"))
    assert len(leaves(chunk(source, ChunkOptions(), TOKENIZER))) == 1


def source_of(parsed: ParsedFile) -> ChunkSource:
    assert parsed.document is not None, parsed.rejects
    name = parsed.document.title
    return ChunkSource(parsed.record_id, parsed.content_hash, parsed.path, name, parsed.media_type, "", "", parsed.blocks)


def real_files() -> list[str]:
    root = CORPUS.parent
    folders = [root / "docs" / name for name in ("docx", "pptx", "xlsx", "csv", "email")] + [root / "jira" / "issues"]
    return [str(path.relative_to(root)) for folder in folders for path in sorted(folder.glob("*.*")) if path.is_file()]


def with_children(parsed: ParsedFile) -> Iterator[ParsedFile]:
    yield parsed
    for child in children(parsed):
        yield from with_children(child)


@pytest.mark.parametrize("name", real_files() or ["none"])
def test_real_files_lose_no_text_and_keep_the_limit(name: str) -> None:
    path = Path(CORPUS.parent / name)
    if not path.is_file():
        pytest.skip("shared/corpora is not beside this checkout")
    data = path.read_bytes()
    for parsed in with_children(parse_bytes(data, detect_media_type(data[:65536], path.name), path=path.name)):
        if parsed.document is None or parsed.document.language:
            continue
        source = source_of(parsed)
        for options in (ChunkOptions(), ChunkOptions(max_tokens=64)):
            result = chunk(source, options, TOKENIZER)
            check_laws(result, source, options, TOKENIZER)
            check_spans(
                result, ChunkSource("", "", "", "", "", blocks=[with_seen_text(b) if b.kind == "image" else b for b in source.blocks])
            )
            text = "".join("".join(one.content.split()) for one in leaves(result))
            for block in source.blocks:
                if options.max_tokens > 64 and len(block.text) < 200 and block.kind not in ("error", "table"):
                    assert "".join(block.text.split()) in text


def test_a_part_of_a_sheet_names_the_cells_of_its_own_rows() -> None:
    block = sheet_table(40, 1, [["Part", "Pressure", "Work"]])
    block.metadata["row_numbers"] = [2 * k + 2 for k in range(40)]
    found = leaves(chunks_of([block], max_tokens=64))
    assert len(found) > 3
    seen: list[int] = []
    for one in found:
        (place,) = one.locators
        first, last = (int(name[1:]) for name in str(place.cells).split(":")) if ":" in str(place.cells) else (0, 0)
        rows = [int(line.split(" | ")[0][5:]) for line in one.content.split("\n") if line.startswith("part-")]
        assert (first, last) == (2 * rows[0], 2 * rows[-1])
        assert str(place.cells).startswith("A") and ":C" in str(place.cells)
        seen += rows
    assert seen == list(range(1, 41))


def test_rows_of_a_csv_file_name_the_row_only_where_it_is_known() -> None:
    data = "name;pressure\n" + "".join(f"valve-{k};{k}\n" for k in range(400))
    parsed = parse_bytes(data, "text/csv", path="a.csv")
    found = leaves(chunk(source_of(parsed), ChunkOptions(max_tokens=64), TOKENIZER))
    for one in found:
        (place,) = one.locators
        first = next(line for line in one.content.split("\n") if line.startswith("valve-"))
        assert place.line is not None and place.row in (None, place.line[0] - 1) and place.line[0] <= int(first[6:].split(";")[0]) + 2


def test_a_part_of_a_table_tells_the_values_that_span_into_it() -> None:
    """A category of many rows is said once in each leaf that holds rows of it, under its header, and in no leaf twice."""
    lines = "".join(
        f"<tr><td rowspan=20>group-{g}</td><td>item-{20 * g}</td><td>valve check</td></tr>"
        + "".join(f"<tr><td>item-{20 * g + k}</td><td>valve check</td></tr>" for k in range(1, 20))
        for g in range(3)
    )
    parsed = parse_bytes(f"<table><tr><th>Group<th>Item<th>Work</tr>{lines}</table>", "text/html", path="a.html")
    options = ChunkOptions(max_tokens=64)
    found = leaves(chunk(source_of(parsed), options, TOKENIZER))
    assert len(found) > 6
    for one in found:
        said = one.content.split("\n")
        items = [int(line.split(" | ")[1].split("-")[1]) for line in said if "item-" in line]
        assert said[0] == "Group | Item | Work"
        assert [line.split(" | ")[0] for line in said if line.startswith("group-")] == sorted({f"group-{at // 20}" for at in items})
        assert one.token_count <= 64
    assert [at for one in found for at in one.metadata["spans"]] and len({one.content for one in found}) == len(found)
