"""The stages without an engine: files of batches that Ray mixes, texts that an endpoint refuses, rejects that stand, lost page ranges."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from raydex.cluster.lake import Lake
from raydex.cluster.stage import Stage
from raydex.ir.errors import ConfigError, StoreError
from raydex.jobs.chunk_stage import ChunkWorker
from raydex.jobs.embed_stage import EmbedWorker
from raydex.jobs.epochs import EpochCommitter
from raydex.jobs.flow import FILES, METRICS, receipt_columns, with_columns
from raydex.jobs.observe_stage import ObserveWorker
from raydex.jobs.parse_stage import ParseWorker
from raydex.jobs.pdf_ranges import find_long_pdfs, parse_ranges
from raydex.jobs.preflight import check_device
from raydex.jobs.work import number_epochs, work_tables
from raydex.kernels.embed import Embedder
from tests.corpus import write_pdf
from tests.stage_runs import PlainRun
from tests.test_embed import Answers, answers, good

__all__ = ["answers"]  # a fixture


def write_notes(folder: Path, count: int) -> Path:
    folder.mkdir()
    for at in range(count):
        (folder / f"{at:02}.txt").write_text(f"Note {at} about pumps.\n\nValve {at} is closed.\n")
    return folder


def split(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(at, size) for at in range(0, table.num_rows, size)]


# -- receipts ----------------------------------------------------------------------------------------------------------


def test_a_file_travels_on_a_row_of_its_own_epoch() -> None:
    batch = pa.table({"epoch": pa.array([5, 5, 4, 3, 4], pa.int64())})
    files = [{"table": "chunks", "path": f"f{epoch}", "size": 1, "rows": 1, "stats": "", "epoch": epoch} for epoch in (3, 4, 5)]
    out = receipt_columns(receipt_columns(batch, files, []), [{**files[1], "table": "embeddings"}], [])
    found = [[(item["table"], item["epoch"]) for item in row] for row in out.column("files").to_pylist()]
    assert found == [[("chunks", 5)], [], [("chunks", 4), ("embeddings", 4)], [("chunks", 3)], []]


@pytest.mark.parametrize("seed", range(6))
def test_every_file_is_published_whatever_batches_the_engine_makes(tmp_path: Path, seed: int) -> None:
    """Parse outputs come in any order, batches mix epochs, outputs are cut into slices that overtake one another."""
    run = PlainRun(write_notes(tmp_path / "notes", 9), tmp_path / "lake")
    context, plan = run.context(), run.plan()
    work, expected = number_epochs(plan.work, 1, 3)
    chance = random.Random(seed)
    committer = EpochCommitter(context, expected, {})
    batches = work_tables(work, 2)
    for worker, size in ((ParseWorker(context), 4), (ObserveWorker(context), 4), (ChunkWorker(context), 2), (EmbedWorker(context), 1)):
        outputs = [piece for batch in batches for piece in split(worker(batch), 1)]
        chance.shuffle(outputs)
        batches = split(pa.concat_tables(outputs).combine_chunks(), size)
    for batch in batches:
        committer.add(batch)
    assert committer.finish().epochs == 3
    for table in ("documents", "blocks", "chunks"):
        assert {row["record_id"] for row in run.rows(table)} == {row["record_id"] for row in run.rows("records")}, table
    assert {row["path"] for row in run.rows("records")} == {f"{at:02}.txt" for at in range(9)}


def receipts(tmp_path: Path) -> tuple[EpochCommitter, pa.Table]:
    run = PlainRun(write_notes(tmp_path / "notes", 2), tmp_path / "lake")
    context, plan = run.context(), run.plan()
    work, expected = number_epochs(plan.work, 1, 2)
    batch = work_tables(work, 2)[0]
    for worker in (ParseWorker(context), ObserveWorker(context), ChunkWorker(context), EmbedWorker(context)):
        batch = worker(batch)
    return EpochCommitter(context, expected, {}), batch


def test_lost_rows_stop_the_run(tmp_path: Path) -> None:
    committer, batch = receipts(tmp_path)
    committer.add(batch.slice(0, 1))
    with pytest.raises(StoreError, match="1 epochs did not complete"):
        committer.finish()


def test_a_file_that_no_epoch_published_stops_the_run(tmp_path: Path) -> None:
    committer, batch = receipts(tmp_path)
    stray = {**batch.column("files").to_pylist()[0][0], "epoch": 7}
    files = [[*row, stray] if at == 1 else row for at, row in enumerate(batch.column("files").to_pylist())]
    committer.add(with_columns(batch, {"files": pa.array(files, FILES), "metrics": pa.array([[], []], METRICS)}))
    with pytest.raises(StoreError, match="were not published"):
        committer.finish()


# -- vectors -----------------------------------------------------------------------------------------------------------


def refuse(word: str) -> Any:
    """An endpoint that answers 400 to every batch with a text that holds `word`."""
    return lambda body: (400, {"error": "no"}) if any(word in text for text in body["input"]) else good(body)


def embedding_run(tmp_path: Path, url: str, count: int) -> PlainRun:
    return PlainRun(write_notes(tmp_path / "notes", count), tmp_path / "lake", embed={"model": "served", "base_url": url})


def test_a_refused_text_costs_its_own_record_alone(tmp_path: Path, answers: Answers) -> None:
    run = embedding_run(tmp_path, answers.url, 8)
    (run.folder / "05.txt").write_text("A note with poison in it.\n")
    answers.script = [refuse("poison")] * 200
    tally = run.run()
    assert tally.rejects == {"endpoint": 1}
    assert tally.states == {"indexed": 7, "degraded": 1}
    assert run.record("05.txt")["missing"] == ["embedding"]
    assert [row["attempts"] for row in run.rows("rejects")] == [run.record("05.txt")["attempts"]] == [1]
    assert {row["record_id"] for row in run.rows("embeddings")} == {row["record_id"] for row in run.rows("records") if not row["missing"]}
    answers.script = []
    run.run()
    assert run.record("05.txt")["state"] == "indexed"
    assert run.record("05.txt")["reject_class"] == ""
    assert run.rows("rejects") == []


def test_the_flag_of_a_cut_text_does_not_depend_on_where_its_vector_came_from(tmp_path: Path) -> None:
    run = PlainRun(tmp_path / "notes", tmp_path / "lake", chunk={"max_tokens": 400})
    for name in "ab":  # equal in name and content: equal texts
        (run.folder / name).mkdir(parents=True)
        (run.folder / name / "note.txt").write_text("word " * 380)
    context, plan = run.context(), run.plan()
    work, expected = number_epochs(plan.work, 1, 1)
    committer = EpochCommitter(context, expected, {})
    embed = EmbedWorker(context)
    embed.embedder = Embedder("stub", "stub@1", lambda batch: np.ones((len(batch), 3)), dimension=3, max_tokens=256)
    parse, observe, chunk = ParseWorker(context), ObserveWorker(context), ChunkWorker(context)
    for batch in work_tables(work, 1):
        committer.add(embed(chunk(observe(parse(batch)))))
    committer.finish()
    rows = run.rows("embeddings")
    assert len({row["text_hash"] for row in rows}) == 1
    assert [row["truncated"] for row in rows] == [True, True]


def test_a_gpu_is_reserved_and_used_or_neither() -> None:
    for device, gpus in (("auto", 0), ("auto", 1), ("cuda", 1), ("cuda:0", 0.5), ("cpu", 0)):
        check_device("embed", device, gpus)
    for device, gpus in (("cpu", 1), ("cuda", 0)):
        with pytest.raises(ConfigError, match=r"stages.embed.gpus") as error:
            check_device("embed", device, gpus)
        assert "embed.device: auto" in str(error.value)


# -- page ranges and rejects that stand --------------------------------------------------------------------------------

LOST = {3: OSError("gone"), 7: OSError("gone")}


@pytest.fixture
def papers(tmp_path: Path) -> PlainRun:
    """A PDF of 9 pages, parsed two pages at a time."""
    folder = tmp_path / "papers"
    folder.mkdir()
    write_pdf(folder / "long.pdf", ["A heading of the chapter", "Some text about pumps", "More text about valves"], 9)
    return PlainRun(folder, tmp_path / "lake", run={"pdf_fan_out_pages": 3, "pdf_range_pages": 2})


def test_each_range_is_work_of_its_own(papers: PlainRun, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, list[int]] = {}

    def run_stages(rows: list[pa.Table], stages: tuple[Stage, ...]) -> Iterator[pa.Table]:
        given["+".join(stage.name for stage in stages)] = [table.num_rows for table in rows]
        workers = [stage.worker(*stage.args) for stage in stages if stage.name != "read"]
        for table in rows:
            for worker in workers:
                table = worker(table)
            yield table

    monkeypatch.setattr("raydex.jobs.pdf_ranges.run_stages", run_stages)
    run = papers.settings.run
    rows = find_long_pdfs(papers.plan().work, run.pdf_fan_out_pages, papers.settings.limits.input_bytes)
    ((record, parts),) = parse_ranges(papers.context(), rows, 1.0, 2).items()
    assert record == rows[0]["record_id"] and len(set(parts)) == 5
    assert given == {"split": [1], "pages+read": [1] * 5}  # what came as one table would keep one worker busy and no other


def test_each_lost_range_is_a_reject_of_its_own(papers: PlainRun) -> None:
    papers.run(LOST)
    rejects = papers.rows("rejects")
    assert sorted(row["error"].partition(":")[0] for row in rejects) == ["pages 3-4", "pages 7-8"]
    assert len({row["reject_id"] for row in rejects}) == 2
    record = papers.record("long.pdf")
    assert (record["state"], record["missing"], record["reject_class"], record["attempts"]) == ("degraded", ["pages"], "unreadable", 1)


def test_a_range_that_could_not_be_read_is_read_again_by_the_next_run(papers: PlainRun) -> None:
    papers.run(LOST)
    assert papers.plan().work.column("start").to_pylist() == ["parse"]
    papers.run()
    assert (papers.record("long.pdf")["state"], papers.record("long.pdf")["reject_class"]) == ("indexed", "")
    assert papers.rows("rejects") == []
    assert papers.plan().idle


def test_a_range_that_can_never_be_read_is_given_up(papers: PlainRun) -> None:
    for at in range(1, 6):
        papers.run(LOST)
        assert papers.record("long.pdf")["attempts"] == at
    assert papers.plan().idle
    assert len(papers.rows("rejects")) == 2


@pytest.fixture
def hung(papers: PlainRun, monkeypatch: pytest.MonkeyPatch) -> PlainRun:
    """Its first pages met the time limit: a terminal class."""
    from raydex.jobs import pdf_ranges
    from raydex.kernels.parse import rejected

    monkeypatch.setattr(pdf_ranges, "rejected", lambda request, name, error: rejected(request, "timeout", "met limits.seconds", 2))
    papers.run({1: OSError("x"), 5: OSError("x")})
    monkeypatch.undo()
    return papers


def test_pages_that_are_missing_stay_known_when_a_later_stage_runs_again(hung: PlainRun, answers: Answers) -> None:
    before = sorted((row["reject_id"], row["class"], row["attempts"], row["error"]) for row in hung.rows("rejects"))
    assert len(before) == 2

    def same() -> None:
        assert sorted((row["reject_id"], row["class"], row["attempts"], row["error"]) for row in hung.rows("rejects")) == before
        record = hung.record("long.pdf")
        assert (record["state"], record["missing"], record["reject_class"]) == ("degraded", ["pages"], "timeout")
        assert record["error"].startswith("pages 1-2: ")
        assert hung.plan().idle

    same()
    for change in ({"chunk": {"max_tokens": 64}}, {"embed": {"model": "served", "base_url": answers.url}}):
        hung.change(**change)
        assert hung.plan().work.column("start").to_pylist() == [next(iter(change))]
        tally = hung.run()
        assert tally.rejects == {}  # nothing was newly rejected
        same()


def test_a_failed_embedding_hides_no_missing_pages(hung: PlainRun, answers: Answers) -> None:
    hung.change(embed={"model": "served", "base_url": answers.url})
    answers.script = [(400, b"")] * 20
    assert hung.run().rejects == {"endpoint": 1}
    record = hung.record("long.pdf")
    assert (record["missing"], record["reject_class"]) == (["embedding", "pages"], "endpoint")
    assert sorted(row["class"] for row in hung.rows("rejects")) == ["endpoint", "timeout", "timeout"]
    answers.script = []
    assert hung.plan().work.column("start").to_pylist() == ["embed"]
    assert hung.run().rejects == {}
    assert (hung.record("long.pdf")["missing"], hung.record("long.pdf")["reject_class"]) == (["pages"], "timeout")
    assert [row["class"] for row in hung.rows("rejects")] == ["timeout", "timeout"]


def test_missing_pages_stay_known_while_the_file_cannot_be_read(hung: PlainRun) -> None:
    path = hung.folder / "long.pdf"
    path.rename(hung.folder.parent / "aside.pdf")
    path.symlink_to("nowhere")
    assert sum(hung.run().rejects.values()) == 1
    assert sorted(row["stage"] for row in hung.rows("rejects")) == ["list", "parse", "parse"]
    assert hung.record("long.pdf")["missing"] == ["current_content", "pages"]
    path.unlink()
    (hung.folder.parent / "aside.pdf").rename(path)
    assert hung.plan().work.column("start").to_pylist() == ["parse"]
    hung.run()
    assert (hung.record("long.pdf")["state"], hung.rows("rejects")) == ("indexed", [])


def test_a_pdf_over_the_size_limit_is_not_cut_into_ranges(papers: PlainRun) -> None:
    size = (papers.folder / "long.pdf").stat().st_size
    papers.change(limits={"input_bytes": size - 1})
    work = papers.plan().work
    assert papers.ranges(papers.context(), work, {}) == [[]]
    assert papers.run().rejects == {"too_large": 1}
    papers.change(limits={"input_bytes": size})
    assert len(papers.ranges(papers.context(), papers.plan().work, {})[0]) == 5


# -- staging -----------------------------------------------------------------------------------------------------------


def test_a_run_leaves_nothing_in_staging_and_removes_what_a_killed_one_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from raydex.configs.settings import load_settings
    from raydex.jobs.index import IndexRequest, IndexRun, index

    lake = Lake(tmp_path / "lake")
    seen: list[list[str]] = []

    def leave() -> None:
        (lake.staging / "pages-run_old").mkdir()
        (lake.staging / "pages-run_old" / "part.json").write_text("{}")
        (lake.staging / "known-run_old.npz").write_bytes(b"x")

    def run(self: IndexRun) -> dict[str, Any]:
        seen.append([path.name for path in lake.staging.iterdir()])
        leave()
        if len(seen) == 2:
            raise ConfigError("a run that fails")
        return {}

    monkeypatch.setattr(IndexRun, "run", run)
    request = IndexRequest(specs=(str(tmp_path),), lake=str(lake.root), settings=load_settings())
    leave()
    index(request)
    assert list(lake.staging.iterdir()) == []
    with pytest.raises(ConfigError):
        index(request)
    assert list(lake.staging.iterdir()) == []
    assert seen == [[], []]
