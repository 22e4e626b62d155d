"""Vector rows, the Milvus store generation by generation, its lock, kills, and exact search."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raydex.cluster import vector_calls
from raydex.cluster.vector_rows import ROW_SCHEMA, TEXT_BYTES, checked_rows, cut_bytes
from raydex.cluster.vectors import OPEN_END, Busy, Hit, VectorStore, collection_name, collection_prefix, holds_collection
from raydex.ir.errors import ConfigError, StoreError
from raydex.kernels.nearest import exact_search, exact_search_parts

DIMENSION = 8
MODEL = "model-1"
COLLECTION = collection_name("lake", MODEL, DIMENSION)


def unit(seed: int, dimension: int = DIMENSION) -> np.ndarray:
    vector = np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)
    return vector / np.linalg.norm(vector)


def row(key: str, seed: int | None = None, **changes: Any) -> dict[str, Any]:
    number = sum(key.encode()) if seed is None else seed
    return {"id": key, "doc_id": "rec_1", "content": f"text {number}", "embedding": unit(number), "source_type": "text/html", **changes}


def as_batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{**r, "embedding": r["embedding"].tolist()} for r in rows], schema=ROW_SCHEMA)


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VectorStore]:
    with VectorStore(str(tmp_path_factory.mktemp("lite") / "vectors.db"), COLLECTION, DIMENSION, model=MODEL) as opened:
        yield opened


@pytest.fixture
def store(shared_store: VectorStore) -> VectorStore:
    """The collection, empty: opening the engine anew for each test costs a second."""
    shared_store._ensure_collection()
    everything = [r["id"] for r in shared_store._listed("gen_from >= 0", ["id"])]
    shared_store._delete(everything)
    return shared_store


def shown(store: VectorStore, generation: int) -> list[str]:
    return sorted(store.keys(generation))


def stored_keys(store: VectorStore) -> list[str]:
    return sorted(r["id"] for r in store._listed("gen_from >= 0", ["id"]))


# rows


def test_a_good_row_passes_unchanged_from_dicts_and_from_arrow() -> None:
    given_row = row("chk_1", section_path=["A", 'b "q" 电池'], metadata_json='{"x": 1}', page_number=3)
    (from_dict,), failures = checked_rows([given_row], DIMENSION)
    (from_arrow,), other = checked_rows(as_batch([given_row]), DIMENSION)
    assert failures == other == []
    assert np.array_equal(from_dict.pop("embedding"), from_arrow.pop("embedding"))
    assert from_dict == from_arrow
    assert json.loads(from_dict["section_path"]) == ["A", 'b "q" 电池']
    assert (from_dict["metadata_json"], from_dict["page_number"], from_dict["created_at"], from_dict["version"]) == ('{"x": 1}', 3, 0, "")


BAD_ROWS = {
    "a NaN": {"embedding": np.full(DIMENSION, np.nan, np.float32)},
    "an infinity": {"embedding": np.array([np.inf] + [0] * (DIMENSION - 1), np.float32)},
    "a zero vector": {"embedding": np.zeros(DIMENSION, np.float32)},
    "twice the length": {"embedding": 2 * unit(1)},
    "another dimension": {"embedding": unit(1, DIMENSION + 1)},
    "no vector": {"embedding": None},
    "a word for a vector": {"embedding": "abc"},
    "a quote in the key": {"id": "chk'1"},
    "a double quote in the key": {"id": 'chk"1'},
    "a backslash in the key": {"id": "chk\\1"},
    "a line break in the key": {"id": "chk\n1"},
    "a version mark in the key": {"id": "chk#1"},
    "no key": {"id": None},
    "a long key": {"id": "k" * 97},
    "no document": {"doc_id": None},
    "a quote in the document": {"doc_id": 'd" or id != "'},
    "half a surrogate pair": {"content": "\ud800"},
    "a number for text": {"content": 5},
    "text for a number": {"page_number": "5"},
    "broken metadata": {"metadata_json": "{"},
    "a list for metadata": {"metadata_json": "[]"},
    "a key twice": {"id": "chk_a"},
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_a_bad_row_costs_itself(name: str) -> None:
    rows, failures = checked_rows([row("chk_a"), {**row("chk_bad"), **BAD_ROWS[name]}, row("chk_z")], DIMENSION)
    assert [r["id"] for r in rows] == ["chk_a", "chk_z"]
    assert [(f.reject_class, bool(f.error)) for f in failures] == [("invalid_input", True)]


def test_a_bad_vector_in_an_arrow_batch_costs_itself() -> None:
    vectors = [unit(1).tolist(), None, [1.0], [float("nan")] * DIMENSION, unit(2).tolist()]
    batch = pa.RecordBatch.from_pylist(
        [{"id": f"chk_{at}", "doc_id": "rec_1", "embedding": vector} for at, vector in enumerate(vectors)], schema=ROW_SCHEMA
    )
    rows, failures = checked_rows(batch, DIMENSION)
    assert [r["id"] for r in rows] == ["chk_0", "chk_4"]
    assert [f.key for f in failures] == ["chk_1", "chk_2", "chk_3"]
    assert np.array_equal(rows[1]["embedding"], unit(2))


@given(st.text(max_size=80), st.integers(0, 120))
def test_a_cut_is_the_longest_prefix_that_fits(text: str, limit: int) -> None:
    raw = text.encode("utf-8", "replace")
    cut = cut_bytes(raw, limit)
    assert raw.decode().startswith(cut)
    assert len(cut.encode()) <= limit
    if cut != raw.decode():
        following = raw.decode()[len(cut)]
        assert len((cut + following).encode()) > limit


def test_long_text_is_cut_at_a_character_border_in_bytes_and_flagged() -> None:
    rows, failures = checked_rows([row("chk_1", content="é" + "电" * 30_000, section_title="x" * 513, doc_name="n" * 256)], DIMENSION)
    assert not failures
    content = rows[0]["content"]
    assert len(content.encode()) == 65_534
    assert content == "é" + "电" * 21_844
    assert len(rows[0]["section_title"]) == 512
    assert json.loads(rows[0]["metadata_json"]) == {"cut_fields": ["content", "section_title"]}


def test_path_and_metadata_lose_whole_elements_and_stay_json() -> None:
    path = [f"第{at}章 " + "节" * 300 for at in range(10)]
    metadata = {"big": "x" * 60_000, "wide": "电" * 3_000, "small": 1}
    rows, failures = checked_rows([row("chk_1", section_path=path, metadata_json=json.dumps(metadata, ensure_ascii=False))], DIMENSION)
    assert not failures
    kept = json.loads(rows[0]["section_path"])
    assert kept == path[: len(kept)]
    assert 0 < len(kept) < len(path)
    found = json.loads(rows[0]["metadata_json"])
    assert found == {"wide": metadata["wide"], "small": 1, "cut_fields": ["section_path", "metadata_json"]}


@settings(max_examples=60)
@given(
    st.lists(st.text(max_size=3_000), max_size=8),
    st.dictionaries(st.text(max_size=20), st.text(max_size=40_000), max_size=6),
    st.sampled_from(sorted(TEXT_BYTES)),
    st.text(min_size=1, max_size=10),
)
def test_any_row_fits_the_collection_or_fails(path: list[str], metadata: dict[str, str], name: str, text: str) -> None:
    long_text = text * (TEXT_BYTES[name] // len(text) + 1)
    rows, failures = checked_rows([row("chk_1", section_path=path, metadata_json=metadata, **{name: long_text})], DIMENSION)
    assert len(rows) + len(failures) == 1
    for good in rows:
        assert all(len(good[field].encode()) <= limit for field, limit in TEXT_BYTES.items())
        assert len(good["section_path"].encode()) <= 4_096
        assert len(good["metadata_json"].encode()) <= 65_535
        assert isinstance(json.loads(good["metadata_json"]), dict)
        assert isinstance(json.loads(good["section_path"]), list)


# generations


def test_a_generation_shows_what_was_added_less_what_was_removed(store: VectorStore) -> None:
    first = store.load(1, [[row("chk_a"), row("chk_b")], as_batch([row("chk_c")])], [])
    second = store.load(2, [[row("chk_d")]], ["chk_b", "chk_unknown"])
    assert (first.inserted, first.closed, second.inserted, second.closed) == (3, 0, 1, 1)
    assert shown(store, 1) == ["chk_a", "chk_b", "chk_c"]
    assert shown(store, 2) == ["chk_a", "chk_c", "chk_d"]
    assert (store.count(1), store.count(2)) == (3, 3)
    assert store.gc(2) == 1
    assert shown(store, 2) == ["chk_a", "chk_c", "chk_d"]
    assert stored_keys(store) == ["chk_a", "chk_c", "chk_d"]


def test_a_changed_row_keeps_its_older_version_for_the_older_generation(store: VectorStore) -> None:
    store.load(1, [[row("chk_a", 1), row("chk_b", 2)]], [])
    result = store.load(2, [[row("chk_a", 3), row("chk_b", 2)]], ["chk_a"])
    assert (result.inserted, result.unchanged) == (1, 1)
    assert shown(store, 1) == shown(store, 2) == ["chk_a", "chk_b"]
    assert store.search(unit(1), 1, 1)[0].score == pytest.approx(1.0, abs=1e-5)
    assert store.search(unit(1), 1, 2)[0].score < 0.99
    assert store.search(unit(3), 1, 2)[0] == Hit("chk_a", pytest.approx(1.0, abs=1e-5))
    assert stored_keys(store) == ["chk_a", "chk_a#1", "chk_b"]
    assert store.gc(2) == 1


def test_a_row_that_comes_back_is_shown_again_and_not_in_between(store: VectorStore) -> None:
    store.load(1, [[row("chk_a")]], [])
    store.load(2, [], ["chk_a"])
    store.load(3, [[row("chk_a")]], [])
    assert [shown(store, g) for g in (1, 2, 3)] == [["chk_a"], [], ["chk_a"]]


def test_an_id_both_removed_and_added_is_shown(store: VectorStore) -> None:
    store.load(1, [[row("chk_a")]], [])
    store.load(2, [[row("chk_a")]], ["chk_a"])
    assert shown(store, 2) == shown(store, 1) == ["chk_a"]
    assert stored_keys(store) == ["chk_a"]


def test_a_bad_row_costs_itself_in_a_load(store: VectorStore) -> None:
    result = store.load(1, [[row("chk_a"), row("chk_b", embedding=np.zeros(DIMENSION)), row("chk'c"), row("chk_d")]], [])
    assert shown(store, 1) == ["chk_a", "chk_d"]
    assert [f.key for f in result.failed] == ["chk_b", "chk'c"]


def test_loading_twice_changes_nothing(store: VectorStore) -> None:
    store.load(1, [[row("chk_a"), row("chk_b")]], [])
    store.load(2, [[row("chk_a", 9), row("chk_c")]], ["chk_b"])
    before = stored_keys(store)
    again = store.load(2, [[row("chk_a", 9), row("chk_c")]], ["chk_b"])
    assert (again.inserted, again.unchanged, again.closed) == (0, 2, 1)
    assert stored_keys(store) == before
    assert shown(store, 1) == ["chk_a", "chk_b"]
    assert shown(store, 2) == ["chk_a", "chk_c"]


class Killed(Exception):
    pass


OLD = {f"chk_{name}": at for at, name in enumerate("abcdef")}


def first_try(store: VectorStore, generation: int, calls: int) -> bool:
    """A load that dies before its write number `calls`; whether it died."""
    real, seen = {name: getattr(store._client, name) for name in ("insert", "upsert", "delete")}, 0

    def counted(name: str, method: Any) -> Any:
        def write(**arguments: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen > calls:
                raise Killed(name)
            return method(**arguments)

        return write

    for name, method in real.items():
        setattr(store._client, name, counted(name, method))
    try:
        store.load(
            generation, [[row("chk_a", 50), row("chk_g", 60)], [row("chk_b", 51), row("chk_c", OLD["chk_c"])]], ["chk_d", "chk_c"], base=1
        )
    except Killed:
        return True
    finally:
        for name, method in real.items():
            setattr(store._client, name, method)
    return False


@pytest.mark.parametrize("generation", [2, 3])
def test_whatever_a_dead_try_wrote_the_next_load_ends_right(store: VectorStore, generation: int) -> None:
    """The kill-point sweep: die before each write call, then load something else as generation 2, or as 3 on the same base."""
    calls, died = 0, True
    while died:
        store._delete(stored_keys(store))
        store.load(1, [[row(key, seed) for key, seed in OLD.items()]], [])
        died = first_try(store, 2, calls)
        assert shown(store, 1) == sorted(OLD)
        assert [h.chunk_id for h in store.search(unit(0), 6, 1)].count("chk_a") == 1
        store.load(generation, [[row("chk_b", 71), row("chk_h", 72)]], ["chk_e", "chk_a"], base=1)
        assert shown(store, 1) == sorted(OLD)
        assert shown(store, generation) == ["chk_b", "chk_c", "chk_d", "chk_f", "chk_h"]
        for key, seed in OLD.items():
            assert Hit(key, pytest.approx(1.0, abs=1e-5)) in store.search(unit(seed), 2, 1), (calls, key)
        for key, seed in {"chk_b": 71, "chk_c": OLD["chk_c"], "chk_d": OLD["chk_d"]}.items():
            assert store.search(unit(seed), 1, generation)[0] == Hit(key, pytest.approx(1.0, abs=1e-5)), (calls, key)
        assert sorted(key.partition("#")[0] for key in stored_keys(store)) == sorted([*OLD, "chk_b", "chk_h"])
        calls += 1
    assert calls > 4


def test_a_load_on_an_older_base_takes_back_the_generations_above_it(store: VectorStore) -> None:
    store.load(1, [[row("chk_a", 1), row("chk_b", 2)]], [])
    store.load(2, [[row("chk_a", 3), row("chk_c")]], ["chk_b"])
    store.load(3, [[row("chk_a", 4)]], ["chk_c"])
    store.load(4, [[row("chk_d")]], [], base=1)
    assert shown(store, 1) == ["chk_a", "chk_b"]
    assert shown(store, 4) == ["chk_a", "chk_b", "chk_d"]
    assert store.search(unit(1), 1, 4) == [Hit("chk_a", pytest.approx(1.0, abs=1e-5))]
    assert stored_keys(store) == ["chk_a", "chk_b", "chk_d"]


def test_a_generation_must_follow_its_base(store: VectorStore) -> None:
    with pytest.raises(ConfigError, match="does not follow"):
        store.load(2, [], [], base=2)


# search


def test_search_gives_cosine_scores_in_a_stable_order_and_filters(store: VectorStore) -> None:
    rows = [row(f"chk_{at:03}", at, source_type="text/html" if at % 2 else "text/x-python", doc_id=f"rec_{at % 3}") for at in range(60)]
    store.load(1, [[*rows, row("chk_twin", 7)]], [])
    hits = store.search(unit(7), 5, 1)
    assert [h.chunk_id for h in hits[:2]] == ["chk_007", "chk_twin"]
    assert hits[0].score == pytest.approx(1.0, abs=1e-5)
    scores = {r["id"]: float(r["embedding"] @ unit(7)) for r in [*rows, row("chk_twin", 7)]}
    best = sorted(scores, key=lambda key: (-round(scores[key], 5), key))[:5]
    assert [h.chunk_id for h in hits] == best
    python = store.search(unit(7), 100, 1, source_types=["text/x-python"])
    assert {h.chunk_id for h in python} == {r["id"] for r in rows if r["source_type"] == "text/x-python"}
    assert {h.chunk_id for h in store.search(unit(7), 100, 1, doc_ids=["rec_2"])} == {r["id"] for r in rows if r["doc_id"] == "rec_2"}
    assert store.search(unit(7), 100, 1, source_types=[]) == []
    assert store.search(unit(7), 0, 1) == []


@pytest.mark.parametrize("text", ['x" or id != "', "x' or id != '", "x\\", "x] or (id", "电池", "a;b$c%"])
def test_text_in_a_filter_stays_text(store: VectorStore, text: str) -> None:
    store.load(1, [[row("chk_a", source_type=text), row("chk_b")]], [])
    assert [h.chunk_id for h in store.search(unit(1), 9, 1, source_types=[text])] == ["chk_a"]


def test_a_line_break_in_a_filter_is_refused(store: VectorStore) -> None:
    with pytest.raises(ConfigError, match="not printable"):
        store.search(unit(1), 1, 1, source_types=["a\nb"])


def test_keys_are_listed_by_the_servers_cursor_too(store: VectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"chk_{at:04}" for at in range(50)]
    store.load(1, [[row(name) for name in names]], [])
    store.load(2, [[row("chk_0003", 5)]], [])
    monkeypatch.setattr(store, "embedded", False)
    monkeypatch.setattr("raydex.cluster.vectors.PAGE_ROWS", 7)
    assert sorted(store.keys(1)) == sorted(store.keys(2)) == names


# faults


def test_answers_that_are_lost_make_no_second_row(store: VectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    from pymilvus.exceptions import MilvusUnavailableException

    monkeypatch.setattr(vector_calls, "FIRST_PAUSE_S", 0.0)
    real, lost = store._client.insert, 0

    def insert(**arguments: Any) -> Any:
        nonlocal lost
        answer = real(**arguments)
        if lost < 2:
            lost += 1
            raise MilvusUnavailableException(message="the answer was lost")
        return answer

    monkeypatch.setattr(store._client, "insert", insert)
    store.load(1, [[row("chk_a"), row("chk_b")]], [])
    assert lost == 2
    assert stored_keys(store) == ["chk_a", "chk_b"]


def test_a_store_that_stays_away_ends_in_a_store_error_and_can_be_resumed(store: VectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    from pymilvus.exceptions import MilvusUnavailableException

    monkeypatch.setattr(vector_calls, "FIRST_PAUSE_S", 0.0)
    attempts = 0

    def insert(**arguments: Any) -> Any:
        nonlocal attempts
        attempts += 1
        raise MilvusUnavailableException(message="down")

    with monkeypatch.context() as patched:
        patched.setattr(store._client, "insert", insert)
        with pytest.raises(StoreError, match="insert failed after 4 of 4 attempts: down"):
            store.load(1, [[row("chk_a")]], [])
    assert attempts == vector_calls.ATTEMPTS
    store.load(1, [[row("chk_a")]], [])
    assert shown(store, 1) == ["chk_a"]


def make(path: str) -> None:
    with VectorStore(path, COLLECTION, DIMENSION, model=MODEL) as store:
        store.load(1, [[row("chk_a")]], [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dimension": DIMENSION + 1}, f"dimension {DIMENSION}, this run needs {DIMENSION + 1}"),
        ({"model": "model-2"}, "model 'model-1', this run needs 'model-2'"),
    ],
)
def test_a_collection_of_another_model_or_dimension_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = str(tmp_path / "v.db")
    make(path)
    wanted: dict[str, Any] = {"dimension": DIMENSION, "model": MODEL, **changes}
    with pytest.raises(StoreError, match=message):
        VectorStore(path, COLLECTION, **wanted).open()
    with VectorStore(path, COLLECTION, DIMENSION, model=MODEL) as again:
        assert list(again.keys(1)) == ["chk_a"]


def test_a_collection_with_another_metric_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "v.db")
    with monkeypatch.context() as patched:
        patched.setattr("raydex.cluster.vectors.METRIC", "L2")
        make(path)
    with pytest.raises(StoreError, match="metric 'L2', this run needs 'COSINE'"):
        VectorStore(path, COLLECTION, DIMENSION, model=MODEL).open()


def test_a_path_must_say_that_it_is_an_embedded_store() -> None:
    with pytest.raises(ConfigError, match=r"ends in \.db"):
        VectorStore("vectors", COLLECTION, DIMENSION)


def test_a_second_owner_is_told_who_holds_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "v.db")
    holder = start(f"with VectorStore({path!r}, COLLECTION, 8, model='model-1') as s:\n    print('open', flush=True)\n    sys.stdin.read()")
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "open\n"
        with pytest.raises(Busy, match=f"process {holder.pid} holds the store"):
            VectorStore(path, COLLECTION, DIMENSION, model=MODEL, wait_s=0.1).open()
    finally:
        holder.kill()
        holder.wait()
    with VectorStore(path, COLLECTION, DIMENSION, model=MODEL) as store:
        assert store.load(1, [[row("chk_a")]], []).inserted == 1


def test_reading_makes_nothing(tmp_path: Path) -> None:
    with VectorStore(str(tmp_path / "v.db"), COLLECTION, DIMENSION) as store, pytest.raises(StoreError, match="no vector store"):
        store.search(unit(1), 1, 1)
    assert [p.name for p in tmp_path.iterdir()] == ["v.db.lock"]
    make(str(tmp_path / "v.db"))
    with (
        VectorStore(str(tmp_path / "v.db"), collection_name("lake", "other", DIMENSION), DIMENSION) as store,
        pytest.raises(StoreError, match="search failed after 1 of 4"),
    ):
        store.search(unit(1), 1, 1)
    with VectorStore(str(tmp_path / "v.db"), COLLECTION, DIMENSION) as store:
        assert [hit.chunk_id for hit in store.search(unit(1), 1, 1)] == ["chk_a"]


def test_a_store_whose_folder_cannot_be_written_is_busy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Busy, match="cannot be written"):
        VectorStore(str(tmp_path / "file" / "v.db"), COLLECTION, DIMENSION).open()


def test_lakes_that_share_a_store_keep_their_rows_and_their_collections(tmp_path: Path) -> None:
    path = str(tmp_path / "v.db")
    ours, older, theirs = (collection_name(*of, DIMENSION) for of in (("a", "new"), ("a", "old"), ("b", "new")))
    for at, name in enumerate((older, theirs, ours)):
        with VectorStore(path, name, DIMENSION) as store:
            assert not store.has_collection
            store.load(1, [[row(f"chk_{at}")]], [])
    assert all(holds_collection(path, name) for name in (ours, older, theirs))
    with VectorStore(path, ours, DIMENSION) as store:
        assert store.has_collection
        assert store.drop_collections(collection_prefix("a"), [older]) == []
        assert store.drop_collections(collection_prefix("a"), []) == [older]
        assert list(store.keys(1)) == ["chk_2"]
        ((key, vector),) = store.sample(1, 5).items()
        assert key == "chk_2"
        assert np.allclose(vector, row("chk_2")["embedding"], atol=1e-6)
    assert [holds_collection(path, name) for name in (ours, older, theirs)] == [True, False, True]
    with VectorStore(path, theirs, DIMENSION) as store:
        assert list(store.keys(1)) == ["chk_1"]
    assert not holds_collection(str(tmp_path / "nothing.db"), ours)


def test_a_broken_embedded_store_says_how_it_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "v.db"
    make(str(path))
    for file in path.rglob("manifest.json*"):
        file.write_text("{")
    with (
        pytest.raises(StoreError, match="delete the store: `raydex index` then loads it anew"),
        VectorStore(str(path), COLLECTION, DIMENSION, model=MODEL) as store,
    ):
        list(store.keys(1))


def start(code: str) -> subprocess.Popen[str]:
    head = """
        import sys, numpy as np
        from raydex.cluster.vectors import VectorStore, collection_name
        COLLECTION = collection_name("lake", "model-1", 8)
        def rows(n, seed):
            v = np.random.default_rng(seed).standard_normal((n, 8)).astype(np.float32)
            v /= np.linalg.norm(v, axis=1, keepdims=True)
            return [{"id": f"chk_{at:05}", "doc_id": "rec_1", "content": f"{seed}", "embedding": v[at]} for at in range(n)]
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(head) + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_loader_killed_with_sigkill_in_mid_load_is_resumed(tmp_path: Path) -> None:
    path = str(tmp_path / "v.db")
    code = textwrap.dedent(f"""
        def slow():
            yield rows(500, 1)
            yield [dict(r, id="chk_x" + r["id"][4:]) for r in rows(500, 3)]
            print("half", flush=True)
            sys.stdin.read()
        with VectorStore({path!r}, COLLECTION, 8, model="model-1") as s:
            s.load(1, [rows(800, 1)], [])
            s.load(2, slow(), ["chk_00700"])
    """)
    loader = start(code)
    assert loader.stdout is not None and loader.stdout.readline() == "half\n"
    loader.send_signal(signal.SIGKILL)
    loader.wait()
    with VectorStore(path, COLLECTION, DIMENSION, model=MODEL) as store:
        assert shown(store, 1) == [f"chk_{at:05}" for at in range(800)]
        store.load(2, [[row("chk_new")]], ["chk_00001"])
        assert shown(store, 1) == [f"chk_{at:05}" for at in range(800)]
        assert shown(store, 2) == [f"chk_{at:05}" for at in range(800) if at != 1] + ["chk_new"]
        assert stored_keys(store) == sorted([*(f"chk_{at:05}" for at in range(800)), "chk_new"])


@pytest.mark.slow
def test_a_process_that_used_the_store_exits_with_0_ten_times(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        s = VectorStore(PATH, COLLECTION, 8, model="model-1").open()
        s.load(1, [rows(300, 1)], [])
        assert s.count(1) == 300 and len(s.search(rows(1, 1)[0]["embedding"], 3, 1)) == 3
        if CLOSE:
            s.close()
    """)
    for at in range(10):
        process = start(f"PATH, CLOSE = {str(tmp_path / f'v{at % 5}.db')!r}, {at % 2 == 0}\n" + code)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")


# exact search


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 400), st.integers(0, 30), st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_exact_search_is_the_sorted_list_whatever_the_parts(count: int, k: int, part: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((count, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    if count > 20:
        vectors[10:20] = vectors[0]
    ids = [f"chk_{at:04}" for at in rng.permutation(count)]
    query = vectors[0] if count else np.ones(16, np.float32)
    scores = vectors.astype(np.float64) @ query.astype(np.float64)
    expected = sorted(zip(ids, scores), key=lambda item: (-round(item[1], 12), item[0]))[:k]
    hits = exact_search(vectors, ids, query, k)
    assert [h.chunk_id for h in hits] == [key for key, _ in expected]
    assert [h.score for h in hits] == pytest.approx([score for _, score in expected])
    parts = [(vectors[at : at + part], ids[at : at + part]) for at in range(0, count, part)]
    assert exact_search_parts(reversed(parts), query, k) == hits


def test_exact_search_agrees_with_the_store(store: VectorStore) -> None:
    rows = [row(f"chk_{at:03}", at) for at in range(300)]
    store.load(1, [rows], [])
    vectors = np.stack([r["embedding"] for r in rows])
    for seed in range(900, 905):
        exact = exact_search(vectors, [r["id"] for r in rows], unit(seed), 10)
        hits = store.search(unit(seed), 10, 1)
        assert [h.chunk_id for h in hits] == [h.chunk_id for h in exact]
        assert [h.score for h in hits] == pytest.approx([h.score for h in exact], abs=1e-5)


@pytest.mark.parametrize(("ids", "query"), [(["a"], np.ones(16)), (["a", "b"], np.ones(15))])
def test_exact_search_refuses_what_does_not_fit(ids: list[str], query: np.ndarray) -> None:
    with pytest.raises(ValueError, match="vectors"):
        exact_search(np.zeros((2, 16), np.float32), ids, query.astype(np.float32), 1)


def test_names_and_intervals() -> None:
    names = [collection_name(lake, model, size) for lake in ("a", "b") for model in ("m", "n") for size in (384, 8)]
    assert len(set(names)) == 8
    assert collection_name("a", "m", 384) == names[0]
    assert names[0].startswith(collection_prefix("a"))
    assert names[0].endswith("_384")
    assert OPEN_END < 2**63
