"""RapidOCR (PP-OCRv6 small, the models in its package) as an `OcrEngine`.

Lines are found image by image; the crops of all images are then recognised together, ordered by width, so that a batch is full and holds
lines of like length whatever page they are from. The invariant: the lines of an image do not depend on which images it is read with, but
for the padding of the batches that its crops fall into on an accelerator; on a CPU each crop is a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from raydex.ir.errors import CapacityError
from raydex.kernels.ocr import OcrLine, OcrPage
from raydex.kernels.onnx_device import is_out_of_memory, packaged_model, session_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MODELS = {"Det": "PP-OCRv6_det_small.onnx", "Cls": "ch_ppocr_mobile_v2.0_cls_mobile.onnx", "Rec": "PP-OCRv6_rec_small.onnx"}
CPU_BATCH, GPU_BATCH = 1, 64  # lines at once: on a CPU the padding costs more than a batch gains
LEAST_WIDTH = 160  # of a line at the model's height; a short one is padded to it
SURE = 0.9  # what a line that was turned the right way up is read with
MOST_LINES = 0.6  # of the text on a page: what runs as this much of it does is upright when the page is turned
LEAST_SIDE = 8  # pixels after scaling: nothing in less can be read


def load_rapidocr(device: str, threads: int) -> RapidOcrEngine:
    """Also sets the threads of OpenCV, which the engine uses between its models. Raises ConfigError."""
    options = session_options(device, threads)
    paths = {f"{part}.model_path": str(packaged_model("rapidocr", name)) for part, name in _MODELS.items()}
    batch = CPU_BATCH if device == "cpu" else GPU_BATCH
    import cv2
    from rapidocr import RapidOCR

    cv2.setNumThreads(threads)
    params: dict[str, Any] = {"Global.log_level": "critical", "Rec.rec_batch_num": batch, **paths}
    params["Rec.rec_img_shape"] = [3, 48, LEAST_WIDTH]
    if batch > CPU_BATCH:
        params["Cls.cls_batch_num"] = batch
    params |= {f"EngineConfig.onnxruntime.{name}": value for name, value in options.items()}
    return RapidOcrEngine(RapidOCR(params=params))


def join_overlapping(boxes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Four-cornered boxes (n x 4 x 2) with those of one line that reach into each other as one: else letters would be cut or read twice."""
    import numpy as np

    out: list[NDArray[np.float32]] = []
    for box in sorted(boxes, key=lambda box: float(box[:, 0].min())):
        at = next((at for at in range(len(out) - 1, -1, -1) if _same_line(out[at], box)), None)
        if at is None:
            out.append(box)
        else:
            (x0, y0), (x1, y1) = np.minimum(out[at].min(0), box.min(0)), np.maximum(out[at].max(0), box.max(0))
            out[at] = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], dtype=np.float32)
    return np.array(out, dtype=np.float32) if len(out) < len(boxes) else boxes


def _same_line(one: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    """Both level, of like height, side by side, and overlapping by a good part of their height, but not one over the other."""
    (a0, b0), (a1, b1) = one.min(0), one.max(0)
    (c0, d0), (c1, d1) = other.min(0), other.max(0)
    low, high = min(b1 - b0, d1 - d0), max(b1 - b0, d1 - d0)
    if high > 2 * low or min(b1, d1) - max(b0, d0) < 0.7 * low:
        return False
    if any(abs(float(box[1, 1] - box[0, 1])) > 0.2 * low for box in (one, other)):
        return False
    return bool(0.25 * low < min(a1, c1) - max(a0, c0) < 0.5 * min(a1 - a0, c1 - c0))


_Line = tuple[str, float, bool]  # text, confidence, whether its crop had to be turned by a half


class _Found:
    """An image in work: boxes of its lines in its own pixels, and how many crops it has among all."""

    def __init__(self, image: NDArray[np.uint8]) -> None:
        self.height, self.width = image.shape[:2]
        self.boxes: list[Any] = []
        self.error = ""

    def page(self, texts: Sequence[_Line], least: float) -> OcrPage:
        """As it is; `turn` says how it should be turned."""
        lines = []
        weights = [0.0] * 4
        for corners, (text, score, flipped) in zip(self.boxes, texts, strict=True):
            if text.strip() and score >= least:
                x, y = corners[:, 0], corners[:, 1]
                box = (float(x.min()), float(y.min()), float(x.max()), float(y.max()))
                lines.append(OcrLine(text.strip(), round(float(score), 4), box))
                weights[_stands(corners) + 2 * flipped] += score * len(text)
        turn = max(range(4), key=lambda turn: weights[turn])
        sure = len(lines) > 1 and weights[turn] > MOST_LINES * sum(weights)
        return OcrPage(self.width, self.height, tuple(lines), self.error, turn if sure else 0, len(texts) - len(lines))


def _stands(corners: NDArray[np.float32]) -> bool:
    """Whether the crop of these corners has been laid on its side to be read, by a quarter against the clock."""
    wide, high = (float(((corners[at] - corners[0]) ** 2).sum()) ** 0.5 for at in (1, 3))
    return high >= 1.5 * wide


def _amount(page: OcrPage) -> float:
    return sum(line.confidence * len(line.text) for line in page.lines)


class RapidOcrEngine:
    name = "rapidocr"

    def __init__(self, engine: Any) -> None:
        self.version = version("rapidocr")
        self._engine = engine

    def read(self, images: Sequence[NDArray[np.uint8]]) -> list[OcrPage]:
        """A page whose text lies on its side or upside down is turned and read anew, for its lines are found and read better upright.
        Raises CapacityError."""
        import numpy as np

        pages = self._read(images)
        askew = [at for at, page in enumerate(pages) if page.turn]
        again = self._read([np.ascontiguousarray(np.rot90(images[at], pages[at].turn)) for at in askew]) if askew else []
        for at, page in zip(askew, again, strict=True):
            upright = not (page.turn or page.error or page.doubtful) and _amount(page) >= SURE * _amount(pages[at])
            pages[at] = replace(page, turn=pages[at].turn) if upright else replace(pages[at], turn=0)
        return pages

    def _read(self, images: Sequence[NDArray[np.uint8]]) -> list[OcrPage]:
        found: list[_Found] = []
        crops: list[list[Any]] = []
        for image in images:
            item = _Found(image)
            found.append(item)
            crops.append(self._guarded(item, self._detect, item, image) or [])
        every = [crop for group in crops for crop in group]
        texts = self._guarded(None, self._recognise, every) if every else []
        if texts is None:  # one crop spoils the batch: each image for itself
            return [item.page(self._alone(item, group), self._engine.text_score) for item, group in zip(found, crops, strict=True)]
        pages = []
        at = 0
        for item, group in zip(found, crops, strict=True):
            pages.append(item.page(texts[at : at + len(group)], self._engine.text_score))
            at += len(group)
        return pages

    def _alone(self, item: _Found, crops: list[Any]) -> list[_Line]:
        texts = self._guarded(item, self._recognise, crops) if crops else []
        if texts is None:
            item.boxes = []
        return texts or []

    def _guarded(self, item: _Found | None, step: Any, *arguments: Any) -> Any:
        """The step's result, or None when it failed: the engine's faults have no class in common."""
        try:
            return step(*arguments)
        except Exception as error:
            if is_out_of_memory(error):
                raise CapacityError("the OCR engine ran out of memory", remedy="Read fewer images at a time") from error
            if item is not None:
                item.error = f"{type(error).__name__}: {str(error).strip().splitlines()[-1] if str(error).strip() else ''}"[:300]
            return None

    def _detect(self, item: _Found, image: NDArray[np.uint8]) -> list[Any]:
        """Crops of the lines, each turned so that its text runs from left to right or upside down."""
        import numpy as np
        from rapidocr.main import RapidOCRError
        from rapidocr.utils.process_img import map_boxes_to_original

        engine = self._engine
        if min(item.height, item.width) * min(1.0, engine.max_side_len / max(item.height, item.width)) < LEAST_SIDE:
            return []
        scaled, steps = engine.preprocess_img(np.ascontiguousarray(image[:, :, ::-1]))  # BGR, as the models take it
        try:
            crops, found = engine.detect_and_crop(scaled, steps)
        except RapidOCRError:  # its word for no text
            return []
        boxes = join_overlapping(found.boxes)
        crops = engine.crop_text_regions(found.img, boxes) if len(boxes) < len(crops) else crops
        item.boxes = list(map_boxes_to_original(boxes, steps, item.height, item.width))
        return list(crops)

    def _recognise(self, crops: list[Any]) -> list[_Line]:
        turned, found = self._engine.cls_and_rotate(crops)
        flips = [angle == "180" for angle, _ in found.cls_res]
        lines = [(*line, flip) for line, flip in zip(self._read_lines(turned), flips, strict=True)]
        doubtful = [at for at, line in enumerate(lines) if line[2] and line[1] < SURE]
        if doubtful:  # the classifier may err: the better reading of the two ways up counts
            for at, line in zip(doubtful, self._read_lines([crops[at] for at in doubtful]), strict=True):
                lines[at] = max(lines[at], (*line, False), key=lambda line: line[1])
        return lines

    def _read_lines(self, crops: list[Any]) -> list[tuple[str, float]]:
        result = self._engine.recognize_txt(crops)
        return list(zip(result.txts, result.scores, strict=True))
