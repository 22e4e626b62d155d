"""Pages and images that hold text only as pixels → OCR and layout, batched over pages and documents; what was seen joins the parsed files.

Bytes of strangers are decoded in a child process as in parsing (`kernels/pixels`); the engines see arrays alone. The invariant: every page
or image that was asked for gets a reading, and one that fails costs no other anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from raydex.configs.settings import OcrSettings, Settings
from raydex.ir.document import Asset
from raydex.ir.errors import CapacityError, InputError, RaydexError
from raydex.ir.ids import content_hash
from raydex.ir.parsed import ParsedFile
from raydex.ir.rows import Stamp
from raydex.jobs.isolation import Keep, ParseChild
from raydex.jobs.sources import read_uri
from raydex.kernels.layout import LayoutEngine, load_layout_engine
from raydex.kernels.limits import Limits
from raydex.kernels.ocr import Box, OcrEngine, OcrPage, load_ocr_engine
from raydex.kernels.ocr_blocks import Frame, Place, Reading, add_frames, add_ocr, add_unavailable, numbers_to_read, observe_asset
from raydex.kernels.picture import FORMATS, to_png
from raydex.kernels.pixels import PDF, TARGET, from_step
from raydex.kernels.request import ParseRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NONE = "none"
MOST_CUTTINGS = 1_000  # of one file
LEAST_CUTTING = 8  # pixels
WINDOW = 8  # pages that a child renders at a time
BATCH_PIXELS = 64_000_000
CACHED_IMAGES = 512

Bytes = Callable[[], bytes]


@dataclass(slots=True)
class Sight:
    """One parsed file and where its bytes are: `data` those of the file, `assets` those of images inside it, by asset id. Both may raise
    OSError or RaydexError. `readings`, `pages` (by asset id) are what was read, `frames` what was kept of an image file of several."""

    parsed: ParsedFile
    data: Bytes
    assets: dict[str, tuple[str, Bytes]] = field(default_factory=dict)
    readings: list[Reading] = field(default_factory=list)
    pages: dict[str, OcrPage] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    refused: InputError | None = None


@dataclass(slots=True)
class _Task:
    """One image: a page or frame of the file, or the image of an asset."""

    sight: Sight
    place: Place
    pixels: NDArray[np.uint8] | None
    asset: str = ""
    key: str = ""


class Observer:
    """Loads its engines when the first image comes. Use it from one thread; close it (or use it as a context manager)."""

    def __init__(self, settings: Settings, *, gpus: float = 0.0, keep: Keep | None = None) -> None:
        """`keep` stores the images that are cut out of pages, and returns where; without it they are read and forgotten."""
        self.keep = keep
        self.ocr: OcrSettings = settings.ocr
        self.captions = bool(settings.caption.model)
        self.limits = settings.limits.to_limits()
        self.device = ("cuda" if gpus else "cpu") if self.ocr.device == "auto" else self.ocr.device
        self._engine: OcrEngine | None = None
        self._layout: LayoutEngine | None = None
        self._pixels: dict[str, bytes] = {}
        self._child = ParseChild(_room(self.limits), target=TARGET, keep=self._hold)
        self._cache: dict[str, OcrPage] = {}
        self._twins: dict[str, list[tuple[Sight, str]]] = {}  # images like one that is being read

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._child.close()

    def observe(self, sights: Sequence[Sight]) -> int:
        """Changes the parsed files; returns the number of images that were read. A file whose text goes over a limit is `refused`. Raises
        ConfigError when an engine cannot be loaded."""
        if self.ocr.engine == NONE:
            for sight in sights:
                self._say_unavailable(sight)
        count = self.read(sights) if self.ocr.engine != NONE else 0
        for sight in sights if self.ocr.engine != NONE else ():
            try:
                self._finish(sight)
            except InputError as error:
                sight.refused = error
        count += self._read_cuttings([sight for sight in sights if sight.refused is None])
        for sight in sights:
            if not self.captions:
                add_unavailable(sight.parsed, "caption", captioned(sight.parsed, sight.assets))
        return count

    def read(self, sights: Sequence[Sight]) -> int:
        """Readings of the pages, frames and images that have none yet; the parsed files stay as they are. Returns their number."""
        count = 0
        for group in self._groups(sights):
            count += len(group)
            self._read(group)
        return count

    def _say_unavailable(self, sight: Sight) -> None:
        parsed = sight.parsed
        numbers = numbers_to_read(parsed)
        pages = [page for page in parsed.pages if page.number in numbers]
        add_unavailable(parsed, "ocr", pages or (parsed.assets if numbers else self._images(sight)))
        if pages or not numbers:
            add_unavailable(parsed, "ocr", self._uncut(sight, {page.number for page in pages}))

    def _images(self, sight: Sight) -> list[Asset]:
        """Images inside the file that are to be read."""
        if not self.ocr.images or sight.parsed.media_type in FORMATS:
            return []
        least = self.ocr.least_side
        sizes = ((asset, min(asset.width or least, asset.height or least)) for asset in sight.parsed.assets)
        return [asset for asset, side in sizes if asset.asset_id in sight.assets and asset.media_type in FORMATS and side >= least]

    def _groups(self, sights: Sequence[Sight]) -> Iterator[list[_Task]]:
        group: list[_Task] = []
        size = 0
        for sight in sights:
            for task in self._tasks(sight):
                if task.pixels is None:
                    self._settle(task, OcrPage(0, 0, error=task.place.error))
                    continue
                room = task.pixels.shape[0] * task.pixels.shape[1]
                if group and (len(group) >= self.ocr.batch_images or size + room > BATCH_PIXELS):
                    yield group
                    group, size = [], 0
                group.append(task)
                size += room
        if group:
            yield group

    def _tasks(self, sight: Sight) -> Iterator[_Task]:
        parsed = sight.parsed
        read = {reading.place.page for reading in sight.readings}
        numbers = [number for number in numbers_to_read(parsed) if number not in read]
        if numbers:
            try:
                data = sight.data()
            except (OSError, RaydexError) as error:
                parsed.add_reject("observe", "unreadable", f"cannot be read again for OCR: {error}")
                data = b""
            for at in range(0, len(numbers), WINDOW) if data else ():
                window = tuple(numbers[at : at + WINDOW])
                for place, pixels in self._decode(parsed, parsed.media_type, data, window):
                    self._keep_frame(sight, place, pixels)
                    yield _Task(sight, place, pixels)
            if not data:
                for number in numbers:
                    yield _Task(sight, Place(number, error="the bytes are not to be had"), None)
        for asset in self._images(sight):
            key, fetch = sight.assets[asset.asset_id]
            known = self._cache.get(key)
            if known is not None:
                sight.pages[asset.asset_id] = known
                continue
            if key in self._twins:
                self._twins[key].append((sight, asset.asset_id))
                continue
            self._twins[key] = []
            try:
                data = fetch()
            except (OSError, RaydexError) as error:
                yield _Task(sight, Place(error=str(error)), None, asset.asset_id, key)
                continue
            for place, pixels in self._decode(parsed, asset.media_type, data, (None,)):
                yield _Task(sight, place, pixels, asset.asset_id, key)

    def _keep_frame(self, sight: Sight, place: Place, pixels: NDArray[np.uint8] | None) -> None:
        """The frames of an image file behind the first have no bytes of their own that a model could be shown: they are kept as PNG."""
        if self.keep is None or pixels is None or sight.parsed.media_type not in FORMATS or (place.page or 1) == 1:
            return
        rows, columns = pixels.shape[:2]
        sight.frames.append(Frame(place.page or 1, columns, rows, self.keep(to_png(pixels)), "image/png"))

    def _decode(
        self, parsed: ParsedFile, media_type: str, data: bytes, numbers: tuple[int | None, ...]
    ) -> list[tuple[Place, NDArray[np.uint8] | None]]:
        """One answer for each number, from the child."""
        request = ParseRequest(parsed.record_id, parsed.content_hash, parsed.path, media_type, data, wanted=numbers)
        reply = self._child.parse(request, Stamp(parsed.record_id, parsed.content_hash, "", "", 0, datetime.now(UTC)))
        found = [from_step(part.step, self._pixels.pop(part.uri)) for part in reply.parts]
        self._pixels.clear()
        if "rejects" not in reply.tables and len(found) == len(numbers):
            return found
        error = reply.tables["rejects"].column("error")[0].as_py() if "rejects" in reply.tables else "its pixels did not come"
        if len(numbers) == 1:
            return [(Place(numbers[0], error=error), None)]
        return [answer for number in numbers for answer in self._decode(parsed, media_type, data, (number,))]

    def _hold(self, data: bytes) -> str:
        key = str(len(self._pixels))
        self._pixels[key] = data
        return key

    def engine(self) -> OcrEngine:
        if self._engine is None:
            self._engine = load_ocr_engine(self.ocr.engine, self.device, self.ocr.threads)
        return self._engine

    def layout(self) -> LayoutEngine | None:
        if self._layout is None and self.ocr.layout != NONE:
            self._layout = load_layout_engine(self.ocr.layout, self.device, self.ocr.threads)
        return self._layout

    def _read(self, group: list[_Task]) -> None:
        pages = self._in_halves(self.engine().read, [task.pixels for task in group])
        whole = [at for at, task in enumerate(group) if not task.asset and pages[at] is not None and pages[at].lines]
        layout = self.layout()
        upright = [_turned(group[at].pixels, pages[at].turn) for at in whole]
        regions = dict(zip(whole, self._in_halves(layout.find, upright))) if layout and whole else {}
        for at, (task, page) in enumerate(zip(group, pages, strict=True)):
            assert task.pixels is not None
            rows, columns = task.pixels.shape[:2]
            self._settle(task, page or OcrPage(columns, rows, error="the engine ran out of memory"), regions.get(at) or ())

    def _in_halves(self, step: Callable[[Any], list[Any]], images: list[Any]) -> list[Any]:
        """Results of the images, fewer at a time while memory is short; None for one that does not fit even alone."""
        try:
            return step(images)
        except CapacityError:
            if len(images) == 1:
                return [None]
            half = len(images) // 2
            return self._in_halves(step, images[:half]) + self._in_halves(step, images[half:])

    def _settle(self, task: _Task, page: OcrPage, regions: Sequence[Any] = ()) -> None:
        if not task.asset:
            task.sight.readings.append(Reading(task.place, page, regions))
            return
        for sight, asset in [(task.sight, task.asset), *self._twins.pop(task.key, ())]:
            sight.pages[asset] = page
        if not page.error:
            if len(self._cache) >= CACHED_IMAGES:
                self._cache.pop(next(iter(self._cache)))
            self._cache[task.key] = page

    def _finish(self, sight: Sight) -> None:
        parsed = sight.parsed
        if sight.frames:
            first = len(parsed.assets)
            add_frames(parsed, sight.frames)
            sight.assets |= {asset.asset_id: (asset.cas_uri, _nothing) for asset in parsed.assets[first:]}
        if sight.readings:
            order = {number: at for at, number in enumerate(numbers_to_read(parsed))}
            readings = sorted((one for one in sight.readings if one.place.page in order), key=lambda one: order[one.place.page])
            add_ocr(parsed, readings, self.engine(), self.limits)
        for asset in parsed.assets:
            if asset.asset_id in sight.pages:
                observe_asset(parsed, asset, sight.pages[asset.asset_id], self.engine())

    def _uncut(self, sight: Sight, read: set[int]) -> list[Asset]:
        """Images on pages of a PDF, which stay in the file, but for those on pages that were `read` as a whole."""
        if not self.ocr.images or sight.parsed.media_type != PDF:
            return []
        least = self.ocr.least_side
        wanted = [asset for asset in sight.parsed.assets if asset.asset_id not in sight.assets and asset.locator.page not in read]
        return [asset for asset in wanted if min(asset.width or least, asset.height or least) >= least]

    def _read_cuttings(self, sights: Sequence[Sight]) -> int:
        """Images on pages of PDFs: cut out of the page as it is shown, kept, and read where the page has text of its own."""
        waiting: list[_Task] = []
        count = 0

        def flush() -> None:
            if waiting and self.ocr.engine != NONE:
                for task, page in zip(waiting, self._in_halves(self.engine().read, [task.pixels for task in waiting]), strict=True):
                    asset = next(asset for asset in task.sight.parsed.assets if asset.asset_id == task.asset)
                    observe_asset(task.sight.parsed, asset, page or OcrPage(0, 0, error="the engine ran out of memory"), self.engine())
            waiting.clear()

        for sight in sights:
            parsed = sight.parsed
            seen = {page.number for page in parsed.pages if page.text_state in ("ocr", "mixed")}
            native = {asset.asset_id for asset in self._uncut(sight, seen)}
            cut = self._uncut(sight, set()) if self.keep is not None else [one for one in parsed.assets if one.asset_id in native]
            if len(cut) > MOST_CUTTINGS:
                said = (
                    f"{len(cut):,} images stand on the pages; the first {MOST_CUTTINGS:,} are cut out, {len(cut) - MOST_CUTTINGS:,} are not"
                )
                parsed.add_event("ocr", "warning", "images_left_out", f"{said} read or captioned. Split the file to have them all")
                cut = cut[:MOST_CUTTINGS]
            for asset, pixels in self._cut(sight, cut):
                if self.keep is not None:
                    sight.assets[asset.asset_id] = (asset.cas_uri, _nothing)
                if asset.asset_id in native:
                    waiting.append(_Task(sight, Place(asset.locator.page), pixels, asset.asset_id))
                    count += 1
                if len(waiting) >= self.ocr.batch_images:
                    flush()
        flush()
        return count if self.ocr.engine != NONE else 0

    def _cut(self, sight: Sight, assets: list[Asset]) -> Iterator[tuple[Asset, NDArray[np.uint8]]]:
        """The pixels of each asset that has any; those that are kept have an address and a type from here on."""
        if not assets:
            return
        parsed = sight.parsed
        try:
            data = sight.data()
        except (OSError, RaydexError) as error:
            parsed.add_event("ocr", "warning", "images_not_read", f"the file cannot be read again: {error}")
            return
        of_page: dict[int, list[Asset]] = {}
        for asset in assets:
            of_page.setdefault(asset.locator.page or 0, []).append(asset)
        numbers = sorted(of_page)
        for at in range(0, len(numbers), WINDOW):
            for place, pixels in self._decode(parsed, PDF, data, tuple(numbers[at : at + WINDOW])):
                for asset in of_page[place.page or 0]:
                    part = None if pixels is None else cutting(pixels, place, asset.locator.bbox)
                    if part is None:
                        parsed.add_event("ocr", "warning", "image_not_read", f"{asset.locator}: {place.error or 'too small on its page'}")
                        continue
                    if self.keep is not None:
                        asset.cas_uri, asset.media_type = self.keep(to_png(part)), "image/png"
                    yield asset, part


def listed_bytes(uri: str, expected: str) -> bytes:
    """The bytes of a file of a source. Raises OSError, and InputError when they have changed since it was parsed."""
    data = read_uri(uri)
    if content_hash(data) != expected:
        raise InputError("the content changed between parsing and OCR", reject_class="changed_while_read")
    return data


def cutting(pixels: NDArray[np.uint8], place: Place, box: Box | None) -> NDArray[np.uint8] | None:
    """The part of a page's pixels in a box of the page; None where hardly anything is left of it."""
    if box is None:
        return None
    rows, columns = pixels.shape[:2]
    x, y = place.scale
    left, right = (min(max(round(edge / x), 0), columns) for edge in (box[0], box[2]))
    top, bottom = (min(max(round(edge / y), 0), rows) for edge in (box[1], box[3]))
    return pixels[top:bottom, left:right].copy() if min(right - left, bottom - top) >= LEAST_CUTTING else None


def _turned(pixels: Any, turn: int) -> NDArray[np.uint8]:
    import numpy as np

    return np.rot90(pixels, turn)


def _nothing() -> bytes:
    return b""


def captioned(parsed: ParsedFile, held: dict[str, Any]) -> list[Asset]:
    """The images of a file that a caption can be had for: those whose bytes are `held` and can be decoded."""
    return [asset for asset in parsed.assets if asset.asset_id in held and asset.media_type in FORMATS]


def _room(limits: Limits) -> Limits:
    """Pixels take more room than the members of a container may."""
    return replace(limits, members_bytes=max(limits.members_bytes, 3 * WINDOW * limits.image_pixels))
