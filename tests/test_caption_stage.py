"""Captions as the second pass of a run: pending until it ends, each image described once, retried alone, gone when the model is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from raydex.configs.settings import load_settings
from raydex.ir.errors import ConfigError
from raydex.jobs.caption_stage import check_captions
from tests.stage_runs import Captioner, PlainRun
from tests.test_observe import of, picture, png, word


@pytest.fixture
def run(tmp_path: Path) -> PlainRun:
    files = tmp_path / "files"
    files.mkdir()
    (files / "note.txt").write_text("About valves.\n")
    (files / "gauge.png").write_bytes(png(picture("Valve")))
    (files / "plan.docx").write_bytes(word(picture("Level 7")))
    (files / "copy.docx").write_bytes(word(picture("Level 7")) + b"")
    made = PlainRun(files, tmp_path / "lake", ocr={"engine": "none"}, caption={"model": "eye"}, list={"max_delete_share": 1})
    made.captioner = Captioner()
    return made


def captions(run: PlainRun, path: str) -> list[tuple[str, str]]:
    return [(row["status"], row["text"]) for row in of(run, "observations", path) if row["kind"] == "caption"]


def marks(run: PlainRun, path: str) -> dict[str, str]:
    return dict(run.record(path)["fingerprints"])


def texts(run: PlainRun, path: str) -> str:
    return "\n".join(row["embedding_text"] or "" for row in of(run, "chunks", path))


def test_each_image_is_described_once_and_found_by_it(run: PlainRun) -> None:
    tally = run.run()
    assert isinstance(run.captioner, Captioner) and [len(keys) for keys in run.captioner.asked] == [2]
    assert tally.states == {"indexed": 3, "degraded": 1}  # the image file has no text without OCR
    assert tally.stages["caption"]["rows_in"] == 3 and tally.stages["caption"]["rows_out"] == 3
    for path in ("gauge.png", "plan.docx", "copy.docx"):
        ((status, text),) = captions(run, path)
        key = of(run, "assets", path)[0]["cas_uri"]
        assert (status, text) == ("ok", f"seen {key[-8:]}") and text in texts(run, path), path
        assert len(of(run, "documents", path)) == 1 and marks(run, path)["caption"] == run.context().fingerprints["caption"]
        kinds = sorted(row["kind"] for row in of(run, "observations", path))
        assert kinds == ["caption", "ocr"], path  # what OCR said still stands
    assert "caption" not in marks(run, "note.txt") and captions(run, "note.txt") == []
    assert run.plan().idle


def test_a_killed_second_pass_is_made_up_for(run: PlainRun, monkeypatch: pytest.MonkeyPatch) -> None:
    describe = run.captioner
    run.captioner = Killer()
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert marks(run, "plan.docx")["caption"] == "pending" and texts(run, "plan.docx")
    run.captioner = describe
    assert run.plan().starts == {"caption": 3}
    tally = run.run()
    assert tally.states == {"indexed": 2, "degraded": 1} and captions(run, "plan.docx")[0][0] == "ok"
    assert run.plan().idle


class Killer(Captioner):
    def __call__(self, images: pa.Table) -> pa.Table:
        raise KeyboardInterrupt


def test_a_model_that_comes_later_describes_what_is_there(run: PlainRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run.change(caption={"model": ""})
    run.run()
    assert captions(run, "plan.docx") == [("unavailable", "")] and marks(run, "plan.docx")["caption"] != "pending"
    run.change(caption={"model": "eye"})
    assert run.plan().starts == {"caption": 3}
    run.run()
    assert captions(run, "plan.docx")[0][0] == "ok" and run.plan().idle
    run.change(caption={"model": ""})
    assert run.plan().starts == {"caption": 3}
    run.run()
    assert captions(run, "plan.docx") == [("unavailable", "")] and "seen" not in texts(run, "plan.docx")
    assert run.plan().idle


def test_frames_that_no_caption_is_made_of_are_said(run: PlainRun) -> None:
    picture("Valve").save(run.folder / "fax.tif", save_all=True, append_images=[picture("Second"), picture("Third")])
    run.run()
    assert [status for status, _ in captions(run, "fax.tif")] == ["ok"]
    said = {path: [row for row in of(run, "events", path) if row["name"] == "frames_not_captioned"] for path in ("fax.tif", "gauge.png")}
    assert [row["message"] for row in said["fax.tif"]] == [
        "2 of 3 frames have no caption, as OCR did not read them; set ocr.engine where it is none"
    ]
    assert said["gauge.png"] == []


def test_a_server_that_fails_is_asked_again_and_a_bad_image_is_not(run: PlainRun) -> None:
    assert isinstance(run.captioner, Captioner)
    run.change(caption={"model": ""})
    run.run()
    run.change(caption={"model": "eye"})
    image, drawing = (of(run, "assets", path)[0]["cas_uri"] for path in ("gauge.png", "plan.docx"))
    run.captioner.failing = {image: "invalid_input", drawing: "endpoint"}
    tally = run.run()
    assert tally.rejects == {"endpoint": 2}
    assert run.record("plan.docx")["missing"] == ["caption"] and run.record("plan.docx")["state"] == "degraded"
    assert run.record("gauge.png")["missing"] == ["text"] and captions(run, "gauge.png") == [("failed", "")]
    assert [(row["stage"], row["class"]) for row in of(run, "rejects", "plan.docx")] == [("caption", "endpoint")]
    assert "shows the gauge" in texts(run, "plan.docx")
    run.captioner.failing = {}
    assert run.plan().starts == {"caption": 2}
    run.run()
    assert (run.record("plan.docx")["state"], run.record("plan.docx")["missing"]) == ("indexed", [])
    assert of(run, "rejects", "plan.docx") == [] and captions(run, "plan.docx")[0][0] == "ok"
    assert run.plan().idle


def test_a_server_that_stays_away_is_given_up(run: PlainRun) -> None:
    run.change(caption={"model": "eye"}, limits={"attempts": 2})
    run.run()
    assert isinstance(run.captioner, Captioner)
    drawing = of(run, "assets", "plan.docx")[0]["cas_uri"]
    run.captioner.failing = {drawing: "endpoint"}
    run.change(caption={"prompt": "What is this?"})
    for starts in ({"caption": 3}, {"caption": 2}):
        assert run.plan().starts == starts
        run.run()
    assert run.plan().idle and run.record("plan.docx")["missing"] == ["caption"]


def test_another_chunk_size_asks_nobody(run: PlainRun) -> None:
    run.run()
    assert isinstance(run.captioner, Captioner)
    before = texts(run, "plan.docx")
    run.change(chunk={"max_tokens": 200})
    assert set(run.plan().starts) == {"chunk"}
    run.run()
    assert len(run.captioner.asked) == 1 and texts(run, "plan.docx") == before and run.plan().idle


def test_captions_that_cannot_be_made_are_refused_before_a_run() -> None:
    wrong: list[dict[str, Any]] = [
        {"caption": {"base_url": "http://127.0.0.1:1"}},
        {"caption": {"model": "m"}, "objects": {"keep_originals": False}},
    ]
    for settings in wrong:
        with pytest.raises(ConfigError):
            check_captions(load_settings(None, settings))
    check_captions(load_settings(None, {}))
