"""Members of containers as records: made with their file, gone with it, chunked on their own, bounded together."""

from __future__ import annotations

import io
import json
import zipfile
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from raydex.cluster.objects import ObjectStore
from raydex.configs.settings import load_settings
from raydex.ir.ids import content_hash
from raydex.jobs import cli
from raydex.jobs.one_file import parse_one
from raydex.jobs.plan import Plan
from raydex.jobs.retry import _merge
from raydex.jobs.summary import members_of_run
from tests.stage_runs import PlainRun


def zipped(*files: tuple[str, bytes | str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()


@pytest.fixture
def run(tmp_path: Path) -> PlainRun:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "note.txt").write_text("A note beside the archive.\n")
    made = PlainRun(tmp_path / "files", tmp_path / "lake", list={"max_delete_share": 1})
    write(made, ("one.md", "# One\n\nAbout pumps.\n"), ("two.txt", "About valves.\n"), ("three.bin", bytes(range(256))))
    return made


def write(run: PlainRun, *files: tuple[str, bytes | str], name: str = "a.zip") -> None:
    (run.folder / name).write_bytes(zipped(*files))


def records(run: PlainRun) -> dict[str, dict[str, Any]]:
    return {row["path"]: row for row in run.rows("records")}


def chunks(run: PlainRun) -> dict[str, list[str]]:
    paths = {row["record_id"]: row["path"] for row in run.rows("records")}
    found: dict[str, list[str]] = {}
    for row in run.rows("chunks"):
        found.setdefault(paths.get(row["record_id"], "gone"), []).append(row["content"])
    return found


def test_members_are_records_of_their_own(run: PlainRun) -> None:
    tally = run.run()
    assert tally.states == {"indexed": 2} and tally.rejects == {"unsupported_media_type": 1}
    found = records(run)
    assert set(found) == {"note.txt", "a.zip", "a.zip!/one.md", "a.zip!/two.txt", "a.zip!/three.bin"}
    parent = found["a.zip"]
    for name, state, data in (("one.md", "indexed", b"# One\n\nAbout pumps.\n"), ("three.bin", "rejected", bytes(range(256)))):
        row = found[f"a.zip!/{name}"]
        assert (row["parent_id"], row["change_key"], row["state"]) == (parent["record_id"], parent["content_hash"], state)
        assert row["content_hash"] == content_hash(data)
        assert ObjectStore(str(run.lake.objects)).get(row["cas_uri"]) == data
    assert found["note.txt"]["parent_id"] == ""
    assert "About valves." in chunks(run)["a.zip!/two.txt"][0]


def test_nothing_changed_is_nothing_to_do(run: PlainRun) -> None:
    run.run()
    plan = run.plan()
    assert plan.idle and (plan.counts["seen"], plan.counts["unchanged"]) == (2, 2)


def test_members_follow_their_file(run: PlainRun) -> None:
    run.run()
    before = records(run)
    write(run, ("one.md", "# One\n\nAbout pumps.\n"), ("four.txt", "About tanks.\n"))
    run.run()
    after = records(run)
    assert set(after) == {"note.txt", "a.zip", "a.zip!/one.md", "a.zip!/four.txt"}
    assert after["a.zip!/one.md"]["record_id"] == before["a.zip!/one.md"]["record_id"]
    assert set(chunks(run)) == {"note.txt", "a.zip", "a.zip!/one.md", "a.zip!/four.txt"}
    (run.folder / "a.zip").unlink()
    plan = run.plan()
    assert (plan.counts["deleted"], len(plan.deleted)) == (1, 3)
    run.run()
    assert set(records(run)) == {"note.txt"} and set(chunks(run)) == {"note.txt"}
    assert run.rows("rejects") == []


def test_a_file_that_no_longer_opens_loses_its_members(run: PlainRun) -> None:
    run.run()
    (run.folder / "a.zip").write_bytes(b"PK\x03\x04 no more")
    run.run()
    assert {path: row["state"] for path, row in records(run).items()} == {"note.txt": "indexed", "a.zip": "rejected"}
    assert set(chunks(run)) == {"note.txt"}


def test_another_chunk_size_cuts_members_too_and_parses_none(run: PlainRun, monkeypatch: pytest.MonkeyPatch) -> None:
    write(run, ("long.txt", "A sentence about pumps and valves. " * 60))
    run.run()
    few = len(chunks(run)["a.zip!/long.txt"])
    run.change(chunk={"max_tokens": 32})
    monkeypatch.setattr("raydex.jobs.parse_stage.ParseWorker._parse", None)
    tally = run.run()
    assert tally.stages["parse"]["rows_in"] == 0 and tally.stages["chunk"]["rows_in"] == 3
    assert len(chunks(run)["a.zip!/long.txt"]) > few
    assert run.plan().idle


def test_another_parse_setting_makes_members_anew(run: PlainRun) -> None:
    run.run()
    run.change(limits={"depth": 150})
    plan = run.plan()
    assert plan.starts == {"parse": 2}
    run.run()
    assert len(records(run)) == 5 and run.plan().idle


def test_nested_containers_end_at_the_limit(run: PlainRun) -> None:
    inner = zipped(("deep.txt", "Deep down.\n"))
    for name in ("3.zip", "2.zip", "1.zip"):
        inner = zipped((name, inner), ("beside.txt", "Beside.\n"))
    (run.folder / "a.zip").write_bytes(inner)
    run.run()
    found = {path: (row["state"], row["reject_class"]) for path, row in records(run).items()}
    assert found["a.zip!/1.zip!/beside.txt"] == ("indexed", "")
    assert found["a.zip!/1.zip!/2.zip"] == ("rejected", "too_deep")
    assert run.plan().idle
    (run.folder / "a.zip").unlink()
    run.run()
    assert set(records(run)) == {"note.txt"}


def forwarded(depth: int, attachment: str = "Attached.\n") -> bytes:
    """A mail that forwards a mail that … forwards a mail with a file attached."""
    mail = EmailMessage()
    mail["Subject"], mail["Message-ID"] = "level 0", "<0@x.example>"
    mail.set_content("Innermost.\n")
    mail.add_attachment(attachment, filename="note.txt")
    for level in range(1, depth):
        outer = EmailMessage()
        outer["Subject"], outer["Message-ID"] = f"level {level}", f"<{level}@x.example>"
        outer.set_content(f"See below, {level}.\n")
        outer.add_attachment(mail)
        mail = outer
    return mail.as_bytes()


def test_archives_and_mails_are_counted_apart(run: PlainRun) -> None:
    (run.folder / "a.zip").write_bytes(zipped(("in.zip", zipped(("box.eml", forwarded(3))))))
    run.run()
    found = {path.removeprefix("a.zip!/in.zip!/box.eml"): row["state"] for path, row in records(run).items()}
    assert found["!/level 1.eml!/level 0.eml!/note.txt"] == "indexed"
    assert set(found.values()) == {"indexed"} and len(found) == 7
    assert chunks(run)["a.zip!/in.zip!/box.eml!/level 1.eml!/level 0.eml!/note.txt"] == ["Attached."]


def test_an_archive_in_a_mail_counts_with_the_archives_around_it(run: PlainRun) -> None:
    deep = zipped(("deep.zip", zipped(("note.txt", "Deep.\n"))), ("beside.txt", "Beside.\n"))
    mail = EmailMessage()
    mail["Subject"], mail["Message-ID"] = "files", "<f@x.example>"
    mail.set_content("Files.\n")
    mail.add_attachment(deep, maintype="application", subtype="zip", filename="in.zip")
    (run.folder / "a.zip").write_bytes(zipped(("box.eml", mail.as_bytes())))
    run.run()
    found = {path: (row["state"], row["reject_class"]) for path, row in records(run).items()}
    assert found["a.zip!/box.eml!/in.zip!/beside.txt"] == ("indexed", "")
    assert found["a.zip!/box.eml!/in.zip!/deep.zip"] == ("rejected", "too_deep")


def test_forwarded_mails_end_at_their_own_limit(run: PlainRun) -> None:
    run.change(limits={"parts_depth": 4})
    (run.folder / "a.eml").write_bytes(forwarded(8))
    (run.folder / "a.zip").unlink()
    run.run()
    found = {path: (row["state"], row["reject_class"]) for path, row in records(run).items() if path.startswith("a.eml")}
    paths = ["a.eml" + "".join(f"!/level {6 - level}.eml" for level in range(depth)) for depth in range(6)]
    assert [found[path] for path in paths] == [("indexed", "")] * 5 + [("rejected", "too_deep")] and len(found) == 6
    (row,) = run.rows("rejects")
    assert "limits.parts_depth (4)" in row["error"]
    assert run.plan().idle


def test_all_that_one_file_unpacks_into_is_bounded(run: PlainRun) -> None:
    run.change(limits={"members": 12})
    (run.folder / "a.zip").write_bytes(
        zipped(*((f"{at}.zip", zipped(*((f"{n}.txt", f"text {at} {n}") for n in range(5)))) for at in range(5)))
    )
    run.run()
    found = [row for path, row in records(run).items() if path.startswith("a.zip!/")]
    assert sum(row["state"] == "indexed" for row in found) == 12
    assert {row["reject_class"] for row in found if row["state"] == "rejected"} == {"bomb"}


def test_without_originals_members_are_read_all_the_same(run: PlainRun) -> None:
    run.change(objects={"keep_originals": False})
    run.run()
    row = records(run)["a.zip!/two.txt"]
    assert (row["state"], row["cas_uri"]) == ("indexed", "")


def test_the_same_bytes_twice_are_two_records(run: PlainRun) -> None:
    write(run, ("a.txt", "Same.\n"), ("b.txt", "Same.\n"))
    run.run()
    found = records(run)
    assert found["a.zip!/a.txt"]["content_hash"] == found["a.zip!/b.txt"]["content_hash"]
    assert found["a.zip!/a.txt"]["record_id"] != found["a.zip!/b.txt"]["record_id"]


def test_one_file_is_printed_with_its_members(tmp_path: Path) -> None:
    ticket = {"key": "OPS-7", "self": "https://x.example/7", "fields": {"summary": "Pump stalls"}}
    (tmp_path / "a.zip").write_bytes(zipped(("page.json", json.dumps({"issues": [ticket]})), ("same.txt", "x"), ("b/same.txt", "x")))
    parsed = parse_one(tmp_path / "a.zip", load_settings(None))
    assert [child["path"] for child in parsed["children"]] == ["a.zip!/page.json", "a.zip!/same.txt", "a.zip!/b/same.txt"]
    (issue,) = parsed["children"][0]["children"]
    assert issue["issue"]["key"] == "OPS-7" and issue["document"]["title"] == "OPS-7 Pump stalls"


def test_a_run_counts_the_members_of_its_own_files() -> None:
    """Of its sources, and of a retry only those inside of what was taken up, at any depth."""
    rows = [
        ("zip_1", "", "src_a"),
        ("in_1", "zip_1", "src_a"),
        ("deep_1", "in_1", "src_a"),
        ("zip_2", "", "src_a"),
        ("in_2", "zip_2", "src_a"),
        ("in_3", "zip_3", "src_b"),
    ]
    ledger = pa.table({name: [row[at] for row in rows] for at, name in enumerate(("record_id", "parent_id", "source_id"))})
    assert members_of_run(ledger, {"src_a"}, None)["record_id"].to_pylist() == ["in_1", "deep_1", "in_2"]
    plan = Plan(work=pa.table({"record_id": ["zip_1"]}))
    assert members_of_run(ledger, {"src_a"}, plan)["record_id"].to_pylist() == ["in_1", "deep_1"]


def test_a_retry_over_sources_adds_its_members_up() -> None:
    def summary(count: int) -> dict[str, Any]:
        return {"seconds": 1.0, "records": {"seen": 1}, "rejects": {}, "stages": {}, "children": {"indexed": count, "rejected": 1}}

    assert _merge(summary(2), summary(3))["children"] == {"indexed": 5, "rejected": 2}


def test_parse_exits_by_what_is_inside_as_a_run_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def code(*arguments: str, **files: bytes) -> int:
        (tmp_path / "a.zip").write_bytes(zipped(*files.items()))
        return cli.run(["parse", str(tmp_path / "a.zip"), *arguments])

    whole, unknown, broken = {"a.txt": b"words"}, {"b.bin": bytes(range(256))}, {"c.pdf": b"%PDF-1.7\n" + b"no objects " * 50}
    assert code(**whole) == code(**whole, **unknown) == 0
    assert code(**whole, **broken) == code("--json", **whole, **broken) == code("--strict", **whole, **unknown) == 1
    assert "rejected (invalid_input)" in capsys.readouterr().out
