"""Pages and images that wait for OCR, through the stages of a run: read once, joined with their file, never taken for empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from docx import Document
from PIL import Image, ImageDraw, ImageFont
from pypdf import PdfWriter
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from raydex.cluster.objects import ObjectStore
from raydex.configs.settings import load_settings
from raydex.ir.errors import CapacityError, ConfigError
from raydex.ir.locator import Locator
from raydex.jobs.observe import Observer, Sight
from raydex.jobs.one_file import parse_one
from raydex.jobs.pipeline import may_hold_images
from raydex.jobs.preflight import check_engines
from raydex.jobs.range_reading import read_readings, write_readings
from raydex.jobs.waiting import Waiting, read_waiting, write_waiting
from raydex.kernels.layout import Region
from raydex.kernels.ocr import OcrLine, OcrPage
from raydex.kernels.parse import parse
from raydex.kernels.request import ParseRequest
from tests.stage_runs import Captioner, PlainRun


def picture(text: str, size: tuple[int, int] = (360, 80)) -> Image.Image:
    image = Image.new("RGB", size, "white")
    ImageDraw.Draw(image).text((20, 24), text, fill="black", font=ImageFont.load_default(30))
    return image


def png(image: Image.Image) -> bytes:
    out = BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def scan(*pages: str) -> bytes:
    """A PDF; a page whose text begins with * is a picture of it."""
    out = BytesIO()
    canvas = Canvas(out, pagesize=(240, 60), invariant=True)
    for text in pages:
        if text.startswith("*"):
            canvas.drawImage(ImageReader(picture(text[1:], (360, 90))), 0, 0, 240, 60)
        else:
            canvas.drawString(20, 30, text)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def word(image: Image.Image) -> bytes:
    out = BytesIO()
    document = Document()
    document.add_heading("Pump station", 1)
    document.add_paragraph("The drawing below shows the gauge.")
    document.add_picture(BytesIO(png(image)))
    document.save(out)
    return out.getvalue()


class Reader:
    """An OCR engine that says how large each image is, and counts."""

    name, version = "reader", "1"

    def __init__(self) -> None:
        self.batches: list[int] = []

    def read(self, images: Sequence[np.ndarray]) -> list[OcrPage]:
        self.batches.append(len(images))
        return [self.page(image) for image in images]

    def page(self, image: np.ndarray) -> OcrPage:
        rows, columns = image.shape[:2]
        return OcrPage(columns, rows, (OcrLine(f"wide {columns}", 0.9, (5.0, 5.0, 100.0, 25.0)),))


class Tight(Reader):
    """Has memory for one image at a time, and for none of the width 50."""

    def page(self, image: np.ndarray) -> OcrPage:
        if image.shape[1] == 50:
            raise CapacityError("full")
        return super().page(image)

    def read(self, images: Sequence[np.ndarray]) -> list[OcrPage]:
        if len(images) > 1:
            raise CapacityError("full")
        return super().read(images)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    made = Reader()
    monkeypatch.setattr("raydex.jobs.observe.load_ocr_engine", lambda *names: made)
    monkeypatch.setattr("raydex.jobs.observe.load_layout_engine", lambda *names: NoRegions())
    return made


class NoRegions:
    name, version = "none", "1"

    def find(self, images: Sequence[np.ndarray]) -> list[list[Any]]:
        return [[] for _ in images]


def run_of(tmp_path: Path, **settings: Any) -> PlainRun:
    files = tmp_path / "files"
    files.mkdir()
    (files / "note.txt").write_text("About valves.\n")
    (files / "gauge.png").write_bytes(png(picture("Valve pressure 42")))
    (files / "mixed.pdf").write_bytes(scan("Native text of page one.", "*Pump house"))
    (files / "native.pdf").write_bytes(scan("Nothing but text here."))
    (files / "plan.docx").write_bytes(word(picture("Level 7")))
    return PlainRun(files, tmp_path / "lake", list={"max_delete_share": 1}, **settings)


def of(run: PlainRun, table: str, path: str) -> list[dict[str, Any]]:
    return [row for row in run.rows(table) if row["record_id"] == run.record(path)["record_id"]]


def chunk_text(run: PlainRun, path: str) -> str:
    return "\n".join(row["embedding_text"] or "" for row in of(run, "chunks", path))


def test_only_what_has_no_text_is_read_and_everything_is_counted(tmp_path: Path, reader: Reader) -> None:
    run = run_of(tmp_path)
    tally = run.run()
    assert tally.states == {"indexed": 5} and not tally.rejects
    assert (tally.stages["observe"]["rows_in"], tally.stages["observe"]["rows_out"]) == (3, 3)
    assert sum(reader.batches) == 3 and len(reader.batches) == 1  # of three files, together
    assert [page["text_state"] for page in of(run, "pages", "mixed.pdf")] == ["native", "ocr"]
    assert of(run, "documents", "mixed.pdf")[0]["text_state"] == "mixed"
    assert [row["text"] for row in of(run, "blocks", "mixed.pdf")] == ["Native text of page one.", "wide 1440"]
    assert "wide 1440" in chunk_text(run, "mixed.pdf") and "wide 360" in chunk_text(run, "gauge.png")
    assert of(run, "observations", "native.pdf") == [] and of(run, "observations", "note.txt") == []
    for path in ("gauge.png", "mixed.pdf", "plan.docx", "note.txt"):
        assert len(of(run, "documents", path)) == 1, path
    marks = {path: dict(run.record(path)["fingerprints"]) for path in ("gauge.png", "mixed.pdf", "plan.docx", "note.txt", "native.pdf")}
    assert {path for path, found in marks.items() if "observe" in found} == {"gauge.png", "mixed.pdf", "plan.docx"}
    assert run.plan().idle


def test_an_image_inside_a_document_has_observations_and_its_text_is_found(tmp_path: Path, reader: Reader) -> None:
    run = run_of(tmp_path)
    run.run()
    (image,) = [row for row in of(run, "blocks", "plan.docx") if row["kind"] == "image"]
    found = {row["kind"]: row for row in of(run, "observations", "plan.docx")}
    assert {kind: (row["asset_id"], row["status"], row["text"]) for kind, row in found.items()} == {
        "ocr": (image["asset_ref"], "ok", "wide 360"),
        "caption": (image["asset_ref"], "unavailable", ""),
    }
    assert (found["ocr"]["engine"], found["ocr"]["confidence"], found["ocr"]["locator"]) == ("reader", 0.9, image["locator"])
    assert of(run, "assets", "plan.docx")[0]["cas_uri"]


def test_without_an_engine_nothing_looks_read(tmp_path: Path) -> None:
    run = run_of(tmp_path, ocr={"engine": "none"})
    tally = run.run()
    assert tally.states == {"indexed": 3, "degraded": 2}
    assert {path: run.record(path)["missing"] for path in ("gauge.png", "mixed.pdf", "plan.docx")} == {
        "gauge.png": ["text"],
        "mixed.pdf": ["text"],
        "plan.docx": [],
    }
    for path in ("gauge.png", "mixed.pdf", "plan.docx"):
        assert {row["status"] for row in of(run, "observations", path)} == {"unavailable"}
    assert [row["locator"] for row in of(run, "observations", "mixed.pdf")] == ["page=2"]


def test_another_engine_reads_again_what_was_read_and_nothing_else(tmp_path: Path, reader: Reader) -> None:
    run = run_of(tmp_path, ocr={"engine": "none"})
    run.run()
    run.change(ocr={"engine": "rapidocr"})
    plan = run.plan()
    assert sorted(plan.work.column("path").to_pylist()) == ["gauge.png", "mixed.pdf", "plan.docx"] and plan.starts == {"parse": 3}
    run.run()
    assert {run.record(path)["state"] for path in ("gauge.png", "mixed.pdf", "plan.docx")} == {"indexed"}
    assert {row["status"] for row in run.rows("observations") if row["kind"] == "ocr"} == {"ok"}
    assert run.plan().idle


def test_another_chunk_size_reads_nothing_and_keeps_what_was_seen(tmp_path: Path, reader: Reader) -> None:
    run = run_of(tmp_path)
    run.run()
    seen, text = len(reader.batches), chunk_text(run, "plan.docx")
    run.change(chunk={"max_tokens": 64})
    assert run.plan().starts == {"chunk": 5}
    run.run()
    assert len(reader.batches) == seen and chunk_text(run, "plan.docx") == text
    assert "observe" in dict(run.record("plan.docx")["fingerprints"]) and run.plan().idle


def test_originals_need_not_be_kept(tmp_path: Path, reader: Reader) -> None:
    run = run_of(tmp_path, objects={"keep_originals": False})
    assert run.run().states == {"indexed": 5}
    assert sum(reader.batches) == 3 and {row["cas_uri"] for row in run.rows("assets")} == {""}


def test_memory_for_fewer_images_is_enough_and_one_too_large_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tight = Tight()
    monkeypatch.setattr("raydex.jobs.observe.load_ocr_engine", lambda *names: tight)
    monkeypatch.setattr("raydex.jobs.observe.load_layout_engine", lambda *names: NoRegions())
    run = run_of(tmp_path)
    (run.folder / "small.png").write_bytes(png(picture("x", (50, 50))))
    assert run.run().states == {"indexed": 5, "degraded": 1}
    assert run.record("small.png")["missing"] == ["text"]
    (failed,) = [row for row in run.rows("observations") if row["status"] == "failed"]
    assert failed["record_id"] == run.record("small.png")["record_id"]
    assert any(row["name"] == "ocr_failed" and "memory" in row["message"] for row in run.rows("events"))


def test_text_over_the_limit_is_a_reject(tmp_path: Path, reader: Reader) -> None:
    run = run_of(tmp_path, limits={"text_bytes": 24})
    (run.folder / "native.pdf").unlink()
    (run.folder / "plan.docx").unlink()
    tally = run.run()
    assert tally.rejects == {"text_too_long": 1} and run.record("mixed.pdf")["state"] == "rejected"
    assert of(run, "documents", "mixed.pdf") == [] and of(run, "chunks", "mixed.pdf") == []
    (reject,) = of(run, "rejects", "mixed.pdf")
    assert (reject["stage"], reject["class"]) == ("observe", "text_too_long")
    assert run.plan().idle


def test_bytes_that_are_gone_cost_their_own_file(tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(tmp_path)

    def get(self: Any, uri: str) -> bytes:
        if uri == lost:
            raise OSError("gone")
        return kept(self, uri)

    from raydex.cluster.objects import SCHEME, ObjectStore
    from raydex.ir.ids import content_hash

    kept = ObjectStore.get
    lost = SCHEME + content_hash((run.folder / "mixed.pdf").read_bytes())
    monkeypatch.setattr(ObjectStore, "get", get)
    tally = run.run()
    assert tally.states == {"indexed": 4, "degraded": 1} and tally.rejects == {"unreadable": 1}
    assert run.record("mixed.pdf")["missing"] == ["pages", "text"]
    monkeypatch.setattr(ObjectStore, "get", kept)
    assert run.plan().starts == {"parse": 1}  # it is tried again
    assert run.run().states == {"indexed": 1}
    assert run.record("mixed.pdf")["missing"] == []


def test_equal_images_are_read_once(tmp_path: Path, reader: Reader) -> None:
    run = run_of(tmp_path)
    run.change(ocr={"batch_images": 1})
    for name in ("two", "three"):
        (run.folder / f"{name}.docx").write_bytes(word(picture("Level 7")))
    run.run()
    assert sum(reader.batches) == 3
    assert len([row for row in run.rows("observations") if row["kind"] == "ocr" and row["text"] == "wide 360"]) == 4


def test_many_pages_go_in_windows(reader: Reader) -> None:
    data = scan(*(f"*Sheet {number}" for number in range(1, 20)), "plain")
    parsed = parse(ParseRequest("rec_a", "hash", "a.pdf", "application/pdf", data))
    with Observer(load_settings(None, {})) as observer:
        assert observer.observe([Sight(parsed, lambda: data)]) == 19
    assert reader.batches == [16, 3]
    assert [page.text_state for page in parsed.pages] == ["ocr"] * 19 + ["native"]
    assert [block.locator.page for block in parsed.blocks] == list(range(1, 21))


def test_long_scans_are_read_by_ranges_and_give_the_same_rows(tmp_path: Path, reader: Reader) -> None:
    rows = {}
    for name, pages in (("whole", 200), ("ranges", 4)):
        run = PlainRun(tmp_path / "files", tmp_path / name, run={"pdf_fan_out_pages": pages, "pdf_range_pages": 2})
        run.folder.mkdir(exist_ok=True)
        (run.folder / "book.pdf").write_bytes(scan("*One", "*Two", "Three is native.", "*Four", "*Five"))
        reader.batches.clear()
        tally = run.run()
        assert tally.states == {"indexed": 1} and sum(reader.batches) == 4, name
        columns = {
            "blocks": ("block_id", "text", "locator", "metadata"),
            "pages": ("number", "text_state"),
            "observations": ("text", "status"),
        }
        rows[name] = {table: [[row[column] for column in wanted] for row in run.rows(table)] for table, wanted in columns.items()}
        seen = len(reader.batches)
    assert seen == 3  # one a range that has scans, none in the stage
    assert rows["whole"] == rows["ranges"]


def test_a_page_that_cannot_be_decoded_fails_alone(reader: Reader, tmp_path: Path) -> None:
    run = run_of(tmp_path)
    data = (run.folder / "gauge.png").read_bytes()
    (run.folder / "cut.png").write_bytes(data[: len(data) // 2])
    run.run()
    assert run.record("cut.png")["state"] in ("rejected", "degraded")
    assert run.record("gauge.png")["state"] == "indexed"


def test_staged_tables_come_back_as_they_were(tmp_path: Path) -> None:
    from raydex.ir.rows import Stamp, parse_tables
    from raydex.jobs.rebuild import to_parsed

    stamp = Stamp("rec_a", "hash", "f", "run", 3, __import__("datetime").datetime(2026, 1, 1, tzinfo=__import__("datetime").UTC))
    parsed = parse(ParseRequest("rec_a", "hash", "a.pdf", "application/pdf", scan("Text", "*Image")))
    tables = parse_tables(parsed, stamp, 7.0)
    path = write_waiting(tmp_path, Waiting(tables, {"asset": "cas:1"}, "cas:2", 7.0))
    again = read_waiting(path)
    assert again.places == {"asset": "cas:1"} and (again.held, again.ms) == ("cas:2", 7.0)
    assert {name: table.to_pylist() for name, table in again.tables.items()} == {name: t.to_pylist() for name, t in tables.items()}
    back = parse_tables(to_parsed(again.tables, "a.pdf"), stamp, 7.0)
    assert {name: table.to_pylist() for name, table in back.items()} == {name: t.to_pylist() for name, t in tables.items()}


def test_unknown_engines_are_named_before_a_run() -> None:
    from raydex.configs.settings import load_settings

    with pytest.raises(ConfigError, match=r"ocr\.engine is 'rapidcr'.*rapidocr, surya, none"):
        check_engines(load_settings(None, {"ocr": {"engine": "rapidcr"}}).ocr)
    check_engines(load_settings(None, {"ocr": {"engine": "none", "layout": "none"}}).ocr)
    assert may_hold_images(["a.py", "b.pdf"]) and may_hold_images(["noname"]) and not may_hold_images(["a.py", "b.csv"])


def test_one_file_is_read_as_in_a_run(tmp_path: Path) -> None:
    """With the packaged engines."""
    pytest.importorskip("rapid_layout")
    from raydex.configs.settings import load_settings

    (tmp_path / "scan.pdf").write_bytes(scan("First page, native.", "*Pump house 12"))
    out = parse_one(tmp_path / "scan.pdf", load_settings(None, {}))
    assert [page["text_state"] for page in out["pages"]] == ["native", "ocr"]
    assert "Pump house 12" in [block["text"] for block in out["blocks"]]
    (seen,) = [item for item in out["observations"] if item["kind"] == "ocr"]
    assert (seen["status"], seen["engine"]) == ("ok", "rapidocr") and seen["confidence"] > 0.8


def test_status_tells_what_waits_and_what_was_seen(tmp_path: Path) -> None:
    from raydex.cluster.lake import load_ledger, pin_versions
    from raydex.jobs.status import observation_states, standing_backlog

    run = run_of(tmp_path, ocr={"engine": "none"})
    run.run()
    seen = observation_states(run.lake, pin_versions(run.lake))
    assert seen == {"ocr": {"unavailable": 3}, "caption": {"unavailable": 2}}
    assert standing_backlog(load_ledger(run.lake), seen) == {"parse": 0, "observe": 3, "caption": 2, "embed": 0}


def test_progress_of_a_run_at_work_is_seen_from_outside(tmp_path: Path) -> None:
    from raydex.cluster.lake import Lake
    from raydex.jobs.progress import backlog

    lake = Lake(tmp_path / "lake")
    assert lake.progress() == {}
    stages = backlog({"parse": 4, "observe": 3, "chunk": 4, "embed": 4}, {"parse": [4, 0, 9], "observe": [1, 0, 5]})
    assert stages["observe"] == {"done": 1, "total": 3, "queued": 2, "rejects": 0}
    assert stages["chunk"]["queued"] == 2
    lake.write_progress(stages)
    assert lake.progress() == stages
    (lake.staging / "progress.json").write_text('{"at": "2026-01-01T00:00:00+00:00", "stages": {"parse": {}}}')
    assert lake.progress() == {}


def figure(text: str = "Native text above a drawing.") -> bytes:
    """A page with text and a picture of text."""
    out = BytesIO()
    canvas = Canvas(out, pagesize=(400, 300), invariant=True)
    canvas.drawString(20, 270, text)
    canvas.drawImage(ImageReader(picture("Level 7")), 20, 100, 180, 40)
    canvas.drawImage(ImageReader(picture("dot", (8, 8))), 300, 100, 4, 4)
    canvas.save()
    return out.getvalue()


def test_an_image_on_a_page_is_cut_out_kept_and_read(tmp_path: Path, reader: Reader) -> None:
    from raydex.cluster.objects import ObjectStore

    run = run_of(tmp_path)
    (run.folder / "figure.pdf").write_bytes(figure())
    assert run.run().states == {"indexed": 6}
    assert [page["text_state"] for page in of(run, "pages", "figure.pdf")] == ["native"]
    (drawing,) = of(run, "assets", "figure.pdf")  # the dot is no image
    assert drawing["media_type"] == "image/png"
    kept = Image.open(BytesIO(ObjectStore(str(run.lake.objects)).get(drawing["cas_uri"])))
    assert abs(kept.width / kept.height - 180 / 40) < 0.1 and kept.width > 700
    found = {(row["kind"], row["status"]): row for row in of(run, "observations", "figure.pdf")}
    assert set(found) == {("ocr", "ok"), ("caption", "unavailable")}
    assert {row["asset_id"] for row in found.values()} == {drawing["asset_id"]}
    assert found["ocr", "ok"]["text"] == f"wide {kept.width}" and found["ocr", "ok"]["locator"] == drawing["locator"]
    assert f"wide {kept.width}" in chunk_text(run, "figure.pdf")
    assert run.plan().idle


def test_images_on_pages_are_unavailable_without_an_engine(tmp_path: Path) -> None:
    run = run_of(tmp_path, ocr={"engine": "none"})
    (run.folder / "figure.pdf").write_bytes(figure())
    run.run()
    assert run.record("figure.pdf")["state"] == "indexed"
    assert sorted((row["kind"], row["status"]) for row in of(run, "observations", "figure.pdf")) == [
        ("caption", "unavailable"),
        ("ocr", "unavailable"),
    ]


def test_the_layout_engine_sees_a_turned_page_upright(reader: Reader, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = (OcrLine("one", 0.9, (5.0, 5.0, 100.0, 25.0)),)
    monkeypatch.setattr(reader, "page", lambda image: OcrPage(image.shape[0], image.shape[1], lines, turn=1))
    seen: list[np.ndarray] = []

    class Watch(NoRegions):
        def find(self, images: Sequence[np.ndarray]) -> list[list[Any]]:
            seen.extend(images)
            return [[Region("text", (0.0, 0.0, 100.0, 60.0), 0.9)] for _ in images]

    monkeypatch.setattr("raydex.jobs.observe.load_layout_engine", lambda *names: Watch())
    data = png(picture("one"))
    request = ParseRequest("rec_1", "hash", "page.png", "image/png", data)
    sight = Sight(parse(request), lambda: data)
    with Observer(load_settings(None, {})) as observer:
        observer.read([sight])
    assert [image.shape for image in seen] == [(360, 80, 3)]
    write_readings(str(tmp_path / "part"), sight.readings)
    assert read_readings([str(tmp_path / "part")]) == [replace(one, regions=list(one.regions)) for one in sight.readings]


def fax(*texts: str) -> bytes:
    first, *others = [picture(text, (360 + 10 * at, 80)) for at, text in enumerate(texts)]
    out = BytesIO()
    first.save(out, "TIFF", save_all=True, append_images=others)
    return out.getvalue()


def run_of_frames(tmp_path: Path, **settings: Any) -> PlainRun:
    files = tmp_path / "files"
    files.mkdir()
    (files / "fax.tif").write_bytes(fax("One", "Two", "Three"))
    return PlainRun(files, tmp_path / "lake", **settings)


def test_every_frame_is_an_image_with_a_caption(tmp_path: Path, reader: Reader) -> None:
    run = run_of_frames(tmp_path, caption={"model": "eye"})
    run.captioner = Captioner()
    run.run()
    assets = sorted(of(run, "assets", "fax.tif"), key=lambda row: row["ordinal"])
    assert [(row["media_type"], row["width"], row["height"]) for row in assets] == [
        ("image/tiff", 360, 80),
        ("image/png", 370, 80),
        ("image/png", 380, 80),
    ]
    store = ObjectStore(run.context().objects_uri)
    sizes = [Image.open(BytesIO(store.get(row["cas_uri"]))).size for row in assets]
    assert sizes == [(360, 80), (370, 80), (380, 80)]
    blocks = sorted(of(run, "blocks", "fax.tif"), key=lambda row: row["ordinal"])
    assert [(row["kind"], row["text"]) for row in blocks] == [
        ("image", ""),
        ("paragraph", "wide 360"),
        ("image", ""),
        ("paragraph", "wide 370"),
        ("image", ""),
        ("paragraph", "wide 380"),
    ]
    assert [Locator.parse(row["locator"]).page for row in blocks] == [None, 1, 2, 2, 3, 3]
    assert [row["ordinal"] for row in blocks] == list(range(6)) and len({row["block_id"] for row in blocks}) == 6
    assert of(run, "documents", "fax.tif")[0]["block_count"] == 6
    described = {row["asset_id"]: row["text"] for row in of(run, "observations", "fax.tif") if row["kind"] == "caption"}
    assert list(map(described.get, [row["asset_id"] for row in assets])) == [f"seen {row['cas_uri'][-8:]}" for row in assets]
    assert all(text in chunk_text(run, "fax.tif") for text in described.values())
    assert not [row for row in of(run, "events", "fax.tif") if row["name"] == "frames_not_captioned"]
    assert run.plan().idle


def test_images_beyond_the_most_that_are_cut_are_counted(tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raydex.jobs.observe.MOST_CUTTINGS", 1)
    run = run_of_frames(tmp_path)
    both = PdfWriter()
    for data in (figure(), figure("Another page with a drawing.")):
        both.append(BytesIO(data))
    both.write(run.folder / "book.pdf")
    run.run()
    messages = [row["message"] for row in of(run, "events", "book.pdf") if row["name"] == "images_left_out"]
    assert len(messages) == 1 and messages[0].startswith("2 images stand on the pages; the first 1 are cut out, 1 are not read")
    assert [bool(row["cas_uri"]) for row in sorted(of(run, "assets", "book.pdf"), key=lambda row: row["ordinal"])] == [True, False]
