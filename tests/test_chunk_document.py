"""Documents: leaves tile the text under the limit, sections nest by heading, tables keep their column names."""

from __future__ import annotations

import dataclasses

import pytest
from chunk_laws import TEXTS, check_laws, check_spans, document, leaves, make_blocks, plain_text
from hypothesis import given, settings
from hypothesis import strategies as st

from raydex.ir.document import Block
from raydex.ir.errors import ConfigError, InputError
from raydex.ir.ids import content_hash, edge_id
from raydex.ir.locator import Locator
from raydex.kernels import chunk as module
from raydex.kernels.chunk import ChunkOptions, chunk
from raydex.kernels.tokens import Tokenizer, load_tokenizer

TOKENIZER = load_tokenizer()
KINDS = st.sampled_from(
    ["heading", "heading", "paragraph", "paragraph", "list_item", "list_item", "table", "code", "image", "note", "error"]
)
CELLS = st.lists(st.sampled_from(["part-1", "5 bar", "check", "电池", "x" * 60, "long cell text with words"]), min_size=1, max_size=3)
TABLES = st.lists(CELLS, max_size=12).map(lambda rows: "\n".join(" | ".join(row) for row in rows))
SHAPES = st.lists(st.tuples(KINDS, TEXTS | TABLES, st.integers(1, 4)), max_size=14)
TITLES = st.sampled_from(["T", "long title " * 9, ""])
STRATEGIES = st.sampled_from(sorted(module.STRATEGIES))


@given(
    SHAPES,
    STRATEGIES,
    st.sampled_from([16, 24, 64, 256]),
    st.sampled_from([0, 4]),
    st.booleans(),
    st.sampled_from(["T", "long title " * 9, ""]),
)
@settings(max_examples=150)
def test_laws_of_any_document(shapes, strategy, max_tokens, overlap, prefix, title) -> None:
    source = document(make_blocks(shapes), title=title)
    options = ChunkOptions(strategy, max_tokens=max_tokens, overlap=overlap, prefix=prefix)
    result = chunk(source, options, TOKENIZER)
    check_laws(result, source, options, TOKENIZER)
    check_spans(result, source)
    assert result == chunk(source, options, TOKENIZER)


@given(TEXTS, STRATEGIES, st.sampled_from([16, 40, 128]), st.sampled_from([0, 4]))
def test_plain_text_slices_match_locators(text, strategy, max_tokens, overlap) -> None:
    source = plain_text(text)
    options = ChunkOptions(strategy, max_tokens=max_tokens, overlap=overlap)
    found = leaves(chunk(source, options, TOKENIZER))
    at = 0
    for one in found:
        (place,) = one.locators
        assert place.slice_text(text) == one.content
        start, end = place.char
        assert start + one.metadata.get("repeated_chars", 0) == at
        assert place.line == (text.count("\n", 0, start) + 1, text.count("\n", 0, max(start, end - 1)) + 1)
        at = end
    assert at == len(text)
    starts = [one.locators[0].char[0] for one in found]
    assert starts == sorted(set(starts))


def test_no_blocks_no_chunks() -> None:
    result = chunk(document([]), ChunkOptions(), TOKENIZER)
    assert result.chunks == []
    assert [(node.node_id, node.labels, node.source_chunk_ids) for node in result.nodes] == [("rec_t", ["Document"], [])]


def test_no_heading_is_one_chunk() -> None:
    result = chunk(
        document(make_blocks([("paragraph", "First words. Second words.", 0), ("paragraph", "Third.", 0)])), ChunkOptions(), TOKENIZER
    )
    (one,) = result.chunks
    assert (one.role, one.parent_id, one.content, one.boundary_reason) == ("leaf", None, "First words. Second words.\n\nThird.", "end")
    assert one.embedding_text == f"A title\n\n{one.content}"
    assert one.title == "page.md"
    assert one.entity_id == "rec_t"
    assert one.summary == "First words. Second words."


def test_sections_nest_by_heading() -> None:
    shapes = [
        ("paragraph", "The preface.", 0),
        ("heading", "One", 1),
        ("paragraph", "Body of one.", 0),
        ("heading", "One A", 2),
        ("paragraph", "Body of one A.", 0),
        ("heading", "Two", 1),
        ("heading", "Deep", 3),
        ("paragraph", "Body of deep.", 0),
    ]
    result = chunk(document(make_blocks(shapes)), ChunkOptions(), TOKENIZER)
    shown = [(c.role, c.title, c.content) for c in result.chunks]
    assert shown[0] == ("parent", "A title", "\n\n".join(text for _, text, _ in shapes))
    assert shown[1:] == [
        ("leaf", "page.md", "The preface."),
        ("parent", "One", "One\n\nBody of one.\n\nOne A\n\nBody of one A."),
        ("leaf", "One", "One\n\nBody of one."),
        ("parent", "One A", "One A\n\nBody of one A."),
        ("leaf", "One A", "One A\n\nBody of one A."),
        ("parent", "Two", "Two\n\nDeep\n\nBody of deep."),
        ("leaf", "Two", "Two"),
        ("parent", "Deep", "Deep\n\nBody of deep."),
        ("leaf", "Deep", "Deep\n\nBody of deep."),
    ]
    by_title = {(c.role, c.title): c for c in result.chunks}
    assert by_title["leaf", "One A"].parent_id == by_title["parent", "One A"].chunk_id
    assert by_title["parent", "One A"].parent_id == by_title["parent", "One"].chunk_id
    assert by_title["parent", "Deep"].parent_id == by_title["parent", "Two"].chunk_id
    assert by_title["leaf", "Deep"].section_path == ["Two", "Deep"]
    assert by_title["leaf", "Deep"].embedding_text == "A title\nTwo > Deep\n\nDeep\n\nBody of deep."
    assert by_title["leaf", "Deep"].metadata["heading_level"] == 3
    assert by_title["leaf", "One"].summary == "Body of one."

    names = {node.node_id: node for node in result.nodes}
    assert [(names[e.source].name, names[e.target].name) for e in result.edges] == [
        ("A title", "One"),
        ("One", "One A"),
        ("A title", "Two"),
        ("Two", "Deep"),
    ]
    one = next(node for node in result.nodes if node.name == "One")
    assert (one.labels, one.node_type, one.properties) == (["Section"], "section", {"heading_level": 1})
    assert one.source_chunk_ids == [by_title["parent", "One"].chunk_id, by_title["leaf", "One"].chunk_id]
    assert by_title["leaf", "One"].entity_id == one.node_id
    first = result.edges[0]
    assert first.edge_id == edge_id("rec_t", one.node_id, "CONTAINS")
    assert first.excerpt_hash == content_hash(b"One")
    assert str(first.locator) == "char=13-16;line=1-1"


def test_a_headings_own_excerpt_hash_is_kept() -> None:
    blocks = make_blocks([("heading", "One", 1)])
    blocks[0].metadata["excerpt_hash"] = "f00"
    assert chunk(document(blocks), ChunkOptions(), TOKENIZER).edges[0].excerpt_hash == "f00"


def test_equal_sections_have_ids_of_their_own() -> None:
    shapes = [("heading", "Notes", 1), ("paragraph", "Same words.", 0)] * 3
    result = chunk(document(make_blocks(shapes)), ChunkOptions(), TOKENIZER)
    assert len({c.chunk_id for c in result.chunks}) == len(result.chunks) == 7
    assert len({node.node_id for node in result.nodes}) == 4
    shifted = chunk(document(make_blocks([("paragraph", "New.", 0), *shapes])), ChunkOptions(), TOKENIZER)
    assert {c.chunk_id for c in leaves(result)} < {c.chunk_id for c in leaves(shifted)}


def test_paths_of_titles_are_not_confused() -> None:
    one = make_blocks([("heading", "a", 1), ("heading", "b > c", 2)])
    two = make_blocks([("heading", "a > b", 1), ("heading", "c", 2)])
    ids = [{n.node_id for n in chunk(document(blocks), ChunkOptions(), TOKENIZER).nodes[1:]} for blocks in (one, two)]
    assert not ids[0] & ids[1]


def test_a_block_is_cut_only_when_it_alone_is_too_long() -> None:
    shapes = [("paragraph", "Some words of a short block. " * 3, 0) for _ in range(8)] + [
        ("paragraph", "A sentence of the long block. " * 30, 0)
    ]
    result = chunk(document(make_blocks(shapes)), ChunkOptions(max_tokens=64), TOKENIZER)
    for one in leaves(result):
        for ordinal, start, end in one.metadata["spans"]:
            assert ordinal == 8 or (start, end) == (0, len(shapes[ordinal][1]))
    reasons = [one.boundary_reason for one in leaves(result)]
    assert reasons[-1] == "end"
    assert set(reasons[-4:-1]) == {"length"}
    assert reasons[0] == "structure"


def test_a_heading_goes_with_the_beginning_of_a_long_block() -> None:
    shapes = [("heading", "Topic", 1), ("paragraph", "A sentence of the long block. " * 30, 0)]
    first = leaves(chunk(document(make_blocks(shapes)), ChunkOptions(max_tokens=64), TOKENIZER))[0]
    assert first.content.startswith("Topic\n\nA sentence")
    assert first.token_count > 40


def test_a_block_that_fits_without_its_prefix_is_not_cut() -> None:
    text = " ".join(["word"] * 60)
    source = document(make_blocks([("heading", "A heading of some length here", 1), ("paragraph", text, 0)]), title="Some title of it")
    one = leaves(chunk(source, ChunkOptions(max_tokens=64), TOKENIZER))[-1]
    assert one.content == text
    assert (one.embedding_text, one.prefix_shortened, one.token_count) == (text, True, 62)


def test_prefix_is_shortened_from_the_outside() -> None:
    shapes = [("heading", "outer " * 24, 1), ("heading", "inner", 2), ("paragraph", "word " * 40, 0)]
    one = leaves(chunk(document(make_blocks(shapes)), ChunkOptions(max_tokens=64), TOKENIZER))[-1]
    assert one.embedding_text.startswith("A title\ninner\n\ninner\n\nword")
    assert one.prefix_shortened
    bare = leaves(chunk(document(make_blocks(shapes)), ChunkOptions(max_tokens=64, prefix=False), TOKENIZER))[-1]
    assert (bare.embedding_text[:5], bare.prefix_shortened) == ("inner", False)


def test_list_items_stay_with_their_lead_in() -> None:
    items = [("list_item", f"item number {k} of the list", 0) for k in range(4)]
    shapes = [("paragraph", "Filler words here. " * 7, 0), ("paragraph", "You need these:", 0), *items]
    found = leaves(chunk(document(make_blocks(shapes)), ChunkOptions(max_tokens=48, prefix=False), TOKENIZER))
    assert [c.content.split("\n")[0][:6] for c in found] == ["Filler", "You ne"]
    assert found[1].content.count("\n") == 5


def table_block(rows: int, caption: str = "", header_rows: int = 1, width: int = 3) -> Block:
    cells = [[f"name {k}" for k in range(width)]] + [[f"r{r}c{k}" for k in range(width)] for r in range(rows)]
    lines = ([caption] if caption else []) + [" | ".join(row) for row in cells]
    metadata = {"rows": [[{"text": cell} for cell in row] for row in cells], "header_rows": header_rows}
    if caption:
        metadata["caption"] = caption
    return Block("blk", "table", 0, "\n".join(lines), Locator(table=1), metadata=metadata)


@pytest.mark.parametrize("caption", ["", "Table 1. Limits"])
def test_table_pieces_show_the_header_again(caption: str) -> None:
    block = table_block(40, caption)
    found = leaves(chunk(document([block]), ChunkOptions(max_tokens=64), TOKENIZER))
    assert len(found) > 3
    header = "name 0 | name 1 | name 2"
    for k, one in enumerate(found):
        lines = one.content.rstrip("\n").split("\n")
        assert lines[1 if caption and k == 0 else 0] == header
        assert one.kind == "table"
        assert all(line.count("|") == 2 for line in lines[1:])
        assert (one.metadata.get("repeated_chars", 0) > 0) == (k > 0)
    own = "".join(one.content[one.metadata.get("repeated_chars", 0) :] for one in found)
    assert own == block.text


def test_table_without_header_repeats_nothing() -> None:
    found = leaves(chunk(document([table_block(40, header_rows=0)]), ChunkOptions(max_tokens=64), TOKENIZER))
    assert all("repeated_chars" not in one.metadata for one in found)


def test_a_row_over_the_limit_is_cut_between_cells_under_its_header() -> None:
    block = table_block(3, width=40)
    found = leaves(chunk(document([block]), ChunkOptions(max_tokens=200), TOKENIZER))
    assert "".join(one.content[one.metadata.get("repeated_chars", 0) :] for one in found) == block.text


def test_parents_say_where_they_were_cut() -> None:
    shapes = [("heading", "Long", 1)] + [("paragraph", "Words of a block. " * 20, 0) for _ in range(10)]
    result = chunk(document(make_blocks(shapes)), ChunkOptions(parent_chars=500), TOKENIZER)
    parent = next(c for c in result.chunks if c.title == "Long" and c.role == "parent")
    assert len(parent.content) == parent.metadata["content_cut_at"] == 500
    assert parent.metadata["content_chars"] == sum(len(text) for _, text, _ in shapes)
    assert (parent.embedding_text, parent.token_count) == ("", 0)


def test_boxes_stay_apart_and_pages_are_told() -> None:
    blocks = [Block(f"b{k}", "paragraph", k, f"Text {k}.", Locator(page=k + 1, bbox=(0, 0, 10, 10))) for k in range(2)]
    (one,) = leaves(chunk(document(blocks), ChunkOptions(), TOKENIZER))
    assert [str(place) for place in one.locators] == ["page=1;bbox=0.00,0.00,10.00,10.00", "page=2;bbox=0.00,0.00,10.00,10.00"]
    assert (one.metadata["page_start"], one.metadata["page_end"]) == (1, 2)


def test_options_are_part_of_the_identity() -> None:
    source = document(make_blocks([("paragraph", "Words.", 0)]))
    names, ids = set(), set()
    variants = [ChunkOptions(), ChunkOptions("fixed"), ChunkOptions(max_tokens=128), ChunkOptions(overlap=8), ChunkOptions(prefix=False)]
    for options in variants:
        (one,) = chunk(source, options, TOKENIZER).chunks
        assert one.strategy.startswith(f"{options.strategy}@")
        assert len(one.strategy.partition("@")[2]) == 12
        names.add(one.strategy)
        ids.add(one.chunk_id)
    assert len(names) == len(ids) == len(variants)


@pytest.mark.parametrize("change", [{"max_tokens": 8}, {"overlap": 100}, {"overlap": -1}, {"prefix_share": 0.9}, {"max_chars": 10}])
def test_options_that_cannot_hold(change: dict) -> None:
    with pytest.raises(ConfigError):
        dataclasses.replace(ChunkOptions(), **change)


def test_unknown_strategy_and_bad_text() -> None:
    with pytest.raises(ConfigError, match="structure, fixed, recursive"):
        chunk(document([]), ChunkOptions("magic"), TOKENIZER)
    with pytest.raises(InputError, match="block 0"):
        chunk(plain_text("bad \ud800 text"), ChunkOptions(), TOKENIZER)


@pytest.fixture(scope="module")
def byte_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """A byte-level BPE, whose tokens depend on the white space around a word: counts of words are estimates."""
    import tokenizers

    inner = tokenizers.Tokenizer(tokenizers.models.BPE())
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    inner.train_from_iterator(["valve pressure hydraulic systems end see no " * 20], trainer)
    path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
    inner.save(str(path))
    return Tokenizer(path)


@given(shapes=SHAPES, strategy=STRATEGIES)
@settings(max_examples=60)
def test_the_limit_holds_for_other_tokenizers(byte_tokenizer, shapes, strategy) -> None:
    assert not byte_tokenizer.is_word_local
    source = document(make_blocks(shapes))
    options = ChunkOptions(strategy, max_tokens=128)
    result = chunk(source, options, byte_tokenizer)
    check_laws(result, source, options, byte_tokenizer)
    check_spans(result, source)
