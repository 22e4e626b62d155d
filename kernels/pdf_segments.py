"""One text page of PDFium → segments with boxes, size and style (columns of a raw page).

A segment is what stands together on one baseline; a gap wider than `CUT` times the type size (a table cell, a column) starts a new one.
The fast way reads one rectangle per text object and one character per line; only pages on which glyphs lie over each other are read
glyph by glyph (`pdf_glyphs`). The invariant: no segment is blank, and none holds a line end, a control character or U+FFFE.
"""

from __future__ import annotations

import ctypes
import re
from itertools import accumulate
from typing import Any

from raydex.kernels.decode import has_bidi_controls
from raydex.kernels.pdf_glyphs import SAME, Glyph, drop_reprints, set_glyphs
from raydex.kernels.pdf_hidden import is_white
from raydex.kernels.pdf_raw import BOLD, CONTROL, HIDDEN, ITALIC, MONO, OBLIQUE, Box, Frame, Page, pdfium, upright

CUT = 1.2
UNMAPPED_SAMPLE = 12

_LINE = re.compile(r"[^\s\ufffe](?:[^\r\n\ufffe]*[^\s\ufffe])?\ufffe?")
_GARBLED = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd\ue000-\uf8ff]")
_SPACE = re.compile(r"\s")
_LETTER = re.compile("[A-Za-z]")
_VOWEL = re.compile("[aeiouyAEIOUY]")
_DOUBLED = re.compile(r"([^\W_])\1([^\W_])\2([^\W_])\3")
_BOLD_NAME = re.compile(r"bold|black|heavy|demi|cmbx|sfbx|[-,]bd\b", re.I)
_ITALIC_NAME = re.compile(r"italic|oblique|[-,]it\b", re.I)
_MONO_NAME = re.compile(r"mono|courier|consol|typewriter|cmtt|menlo|fixed|terminal|lucidasanstyp", re.I)

Segment = tuple[str, Box, int, int]


class TextReader:
    """Reads boxes and styles of one text page through buffers that are made once."""

    def __init__(self, text_page: Any, frame: Frame, width: float, height: float) -> None:
        self.calls = pdfium()
        self.text_page = text_page
        self.frame = frame
        self.width = width
        self.height = height
        self.values = [ctypes.c_double() for _ in range(4)]
        self.slots = [ctypes.byref(value) for value in self.values]
        self.found = self.calls.raw.FS_MATRIX()
        self.matrix_slot = ctypes.byref(self.found)
        self.fonts: dict[int | None, int] = {}
        self.ink = [ctypes.c_uint() for _ in range(4)]
        self.ink_slots = [ctypes.byref(part) for part in self.ink]

    def text(self) -> tuple[str, list[int] | None, int]:
        """(text, character index of each code point or None where they are equal, count of characters without any text)."""
        raw, text_page = self.calls.raw, self.text_page
        last = raw.FPDFText_CountChars(text_page)
        first = 0
        while first < last and raw.FPDFText_GetTextIndexFromCharIndex(text_page, first) < 0:
            first += 1
        while last > first and raw.FPDFText_GetTextIndexFromCharIndex(text_page, last - 1) < 0:
            last -= 1
        if last <= first:
            return "", None, last
        size = max(raw.FPDFText_GetTextIndexFromCharIndex(text_page, last - 1) + 2, last - first + 1)
        buffer = (ctypes.c_ushort * size)()
        units = raw.FPDFText_GetText(text_page, first, last - first, buffer) - 1
        text = ctypes.string_at(buffer, 2 * units).decode("utf-16-le", "replace")
        if units == last and len(text) == units:
            return text, None, 0
        starts = accumulate((2 if char > "\uffff" else 1 for char in text), initial=0)
        return text, [raw.FPDFText_GetCharIndexFromTextIndex(text_page, unit) for unit in starts], last - units

    def rects(self, start: int, count: int) -> list[Box]:
        """(left, bottom, right, top) in page space, one per text object in the range."""
        text_page = self.text_page
        left, top, right, bottom = self.values
        a, b, c, d = self.slots
        get_rect = self.calls.get_rect
        out = []
        for index in range(self.calls.count_rects(text_page, start, count)):
            get_rect(text_page, index, a, b, c, d)
            out.append((left.value, bottom.value, right.value, top.value))
        return out

    def char_box(self, index: int) -> Box:
        """(left, bottom, right, top) in page space."""
        left, right, bottom, top = self.values
        self.calls.char_box(self.text_page, index, *self.slots)
        return left.value, bottom.value, right.value, top.value

    def loose_box(self, first: int, last: int) -> Box:
        """Box by origin, advance and type size, for fonts whose glyphs have no outline box."""
        loose = self.calls.raw.FS_RECTF()
        self.calls.loose_box(self.text_page, first, ctypes.byref(loose))
        left, bottom, right, top = loose.left, loose.bottom, loose.right, loose.top
        self.calls.loose_box(self.text_page, last, ctypes.byref(loose))
        return min(left, loose.left), min(bottom, loose.bottom), max(right, loose.right), max(top, loose.top)

    def probe(self, index: int) -> tuple[float, int, int, float]:
        """(size in points, style bits, turn on the upright page, baseline in the reading frame) of one character."""
        calls, text_page, found = self.calls, self.text_page, self.found
        calls.matrix(text_page, index, self.matrix_slot)
        style = 0
        handle = calls.text_object(text_page, index)
        if handle is not None:
            font = calls.font_of(handle)
            known = self.fonts.get(font)
            if known is None:
                known = self.fonts[font] = font_style(font)
            style = known
            mode = calls.render_mode(handle)
            if mode >= 2:
                style |= BOLD if mode == 2 else HIDDEN if mode in (3, 7) else 0
        size = calls.font_size(text_page, index)
        b, d = found.b, found.d
        if b == 0.0 and d > 0.0 and self.frame[0] == 0:
            return size * d, style, 0, self.frame[4] - found.f
        return self._turned(size, style)

    def is_white(self, index: int) -> bool:
        """Whether a character is filled in white or without ink, and has no outline either."""
        handle = self.calls.text_object(self.text_page, index)
        if handle is None or not self.calls.fill_color(handle, *self.ink_slots):
            return False
        return is_white([part.value for part in self.ink]) and self.calls.render_mode(handle) in (0, 4)

    def _turned(self, size: float, style: int) -> tuple[float, int, int, float]:
        found = self.found
        scale = (found.c * found.c + found.d * found.d) ** 0.5
        along, across = abs(found.a), abs(found.b)
        if along >= 20 * across:
            turn = 0 if found.a >= 0 else 2
        elif across >= 20 * along:
            turn = 1 if found.b > 0 else 3
        else:
            turn = OBLIQUE
        if turn != OBLIQUE:
            turn = (turn - self.frame[0]) % 4
        x, y, _, _ = upright(self.frame, found.e, found.f, found.e, found.f)
        base = (y, x, self.height - y, self.width - x, y)[turn]
        return (size * scale if scale > 0 else size), style, turn, base


def font_style(font: int | None) -> int:
    """Style bits of a font handle: by its name, since its weight is a guess from stem widths, and by its flags."""
    raw = pdfium().raw
    if font is None:
        return 0
    handle = ctypes.cast(ctypes.c_void_p(font), raw.FPDF_FONT)
    buffer = ctypes.create_string_buffer(256)
    raw.FPDFFont_GetBaseFontName(handle, buffer, 256)
    name = buffer.value.decode("latin-1")
    flags = max(raw.FPDFFont_GetFlags(handle), 0)
    style = 0
    if _BOLD_NAME.search(name) or flags & (1 << 18):
        style |= BOLD
    if _ITALIC_NAME.search(name) or flags & (1 << 6):
        style |= ITALIC
    if _MONO_NAME.search(name) or flags & 1:
        style |= MONO
    return style


def read_text(text_page: Any, page: Page, frame: Frame) -> set[int] | None:
    """Fills the segment columns of `page`; positions of segments in white, or None when the text layer is garbled (nothing is filled)."""
    reader = TextReader(text_page, frame, page["width"], page["height"])
    text, indexes, missing = reader.text()
    if not text and not missing:
        return set()
    if is_garbled(reader, text, indexes, missing):
        return None
    if has_bidi_controls(text):
        page["warnings"].append("bidi_controls")
    segments, overlaid = fast_segments(reader, text, indexes)
    if overlaid or is_doubled(text) or lie_over(segments):
        glyphs, dropped = drop_reprints(read_glyphs(reader, text, indexes))
        if dropped:
            page["warnings"].append("reprinted_glyphs")
            segments = set_glyphs(glyphs, CUT)
    return fill(page, reader, segments)


def is_doubled(text: str) -> bool:
    """Whether three pairs of equal letters or digits follow each other somewhere, as in a line whose glyphs are printed twice each."""
    import numpy

    units = numpy.frombuffer(text.encode("utf-32-le", "replace"), numpy.uint32)
    same = units[1:] == units[:-1]
    return bool((same[4:] & same[2:-2] & same[:-4]).any()) and _DOUBLED.search(text) is not None


def is_garbled(reader: TextReader, text: str, indexes: list[int] | None, missing: int) -> bool:
    """Whether most visible characters are U+FFFD, private use, controls, without text, or without a mapping and implausible."""
    if missing or _GARBLED.search(text):
        visible = len(text) - len(_SPACE.findall(text)) + missing
        if len(_GARBLED.findall(text)) + missing > visible / 2:
            return True
    step = max(1, len(text) // UNMAPPED_SAMPLE)
    tried = unmapped = 0
    map_error, text_page = reader.calls.map_error, reader.text_page
    for at in range(0, len(text), step):
        if not text[at].isspace():
            tried += 1
            unmapped += map_error(text_page, at if indexes is None else indexes[at]) == 1
    if unmapped * 2 <= tried:
        return False
    letters = len(_LETTER.findall(text))
    return letters * 2 < len("".join(text.split())) or not 0.15 < len(_VOWEL.findall(text)) / letters < 0.65


def fast_segments(reader: TextReader, text: str, indexes: list[int] | None) -> tuple[list[Segment], bool]:
    """(segments: text, box in page space, first and last character index; whether objects of a line lie over each other)."""
    out: list[Segment] = []
    overlaid = False
    read_rects = reader.rects
    for match in _LINE.finditer(text):
        start, end = match.span()
        first, last = (start, end - 1) if indexes is None else (indexes[start], indexes[end - 1])
        rects = read_rects(first, last - first + 1)
        if len(rects) == 1:
            # one text object has one font and size: its first character tells all
            out.append((match.group(), rects[0], first, first))
        elif rects:
            overlaid |= _add_line(out, reader, match.group(), rects, (start, first, last), indexes)
        else:
            out.append((match.group(), reader.loose_box(first, last), first, last))
    return out, overlaid


def _add_line(
    out: list[Segment], reader: TextReader, line: str, rects: list[Box], place: tuple[int, int, int], indexes: list[int] | None
) -> bool:
    """Adds a line of several objects, cut at wide gaps; True when one object lies over the one before it."""
    start, first, last = place
    left, bottom, right, top = rects[0]
    begin = begun = 0
    overlaid, level = False, True
    size = 0.0
    for at, (x0, y0, x1, y1) in enumerate(rects):
        gap = x0 - right
        # on a page of few words PDFium strings lines together that stand one under the other
        under = level and (y1 < bottom or y0 > top) and _is_level(reader, first)
        if gap > 3.0 or under:
            size = size or max(reader.probe(first)[0], 1.0)
            found = _find_left(reader, line, begin, x0, start, indexes) if gap > CUT * size or under else None
            if found is not None:
                piece = line[begin:found].rstrip()
                head = _index(start + begin, indexes)
                tail = head if at - begun == 1 else _index(start + begin + len(piece) - 1, indexes)
                out.append((piece, (left, bottom, right, top), head, tail))
                left, bottom, right, top = x0, y0, x1, y1
                begin, begun = found, at
                continue
            level = level and not under  # such a line is searched once in vain, not for each of its objects
        elif gap < -1.0 and at > begun and not overlaid:
            overlaid = _repeats(rects, at, reader.probe(first)[0])
        if x0 < left:
            left = x0
        if x1 > right:
            right = x1
        if y0 < bottom:
            bottom = y0
        if y1 > top:
            top = y1
    head = _index(start + begin, indexes)
    out.append((line[begin:], (left, bottom, right, top), head, head if len(rects) - begun == 1 else last))
    return overlaid


def _is_level(reader: TextReader, index: int) -> bool:
    """Whether a character stands on a horizontal line in page space."""
    turn = reader.probe(index)[2]
    return turn != OBLIQUE and (turn + reader.frame[0]) % 2 == 0


def _repeats(rects: list[Box], at: int, size: float) -> bool:
    """Whether rectangle `at` begins where an earlier one of about its size begins."""
    x0, y0, x1, y1 = rects[at]
    near = max(SAME * size, 0.2)
    for left, bottom, right, top in rects[:at]:
        if abs(left - x0) <= near and abs(bottom - y0) <= near and abs((right - left) - (x1 - x0)) <= near and abs(top - y1) <= near:
            return True
    return False


def _index(position: int, indexes: list[int] | None) -> int:
    return position if indexes is None else indexes[position]


def _find_left(reader: TextReader, line: str, begin: int, left: float, start: int, indexes: list[int] | None) -> int | None:
    """Where in the line the word stands whose first character begins at `left`."""
    at = line.find(" ", begin + 1)
    while at >= 0:
        if at + 1 < len(line) and abs(reader.char_box(_index(start + at + 1, indexes))[0] - left) < 0.02:
            return at + 1
        at = line.find(" ", at + 1)
    return None


def lie_over(segments: list[Segment]) -> bool:
    """Whether a segment covers more than half of another and begins or ends with the same letters: text printed twice."""
    order = sorted([(box[1], box, text) for text, box, _, _ in segments])
    for at, (bottom, (left, _, right, top), text) in enumerate(order):
        half = 0.5 * (top - bottom)
        for next_at in range(at + 1, min(at + 40, len(order))):
            other_bottom, other, other_text = order[next_at]
            if other_bottom >= bottom + half:
                break
            width = min(right, other[2]) - max(left, other[0])
            if width > 0 and width > 0.5 * min(right - left, other[2] - other[0]) and min(top, other[3]) - other_bottom > half:
                short, long = (text, other_text) if len(text) < len(other_text) else (other_text, text)
                if short[:4] in long or short[-4:] in long:
                    return True
    return False


def read_glyphs(reader: TextReader, text: str, indexes: list[int] | None) -> list[Glyph]:
    """Every printed character (PDFium's own spaces and line ends left out), with its extent along its direction."""
    calls, text_page, found = reader.calls, reader.text_page, reader.found
    loose = calls.raw.FS_RECTF()
    loose_slot = ctypes.byref(loose)
    x, y = ctypes.c_double(), ctypes.c_double()
    x_slot, y_slot = ctypes.byref(x), ctypes.byref(y)
    out: list[Glyph] = []
    for position, char in enumerate(text):
        index = _index(position, indexes)
        if char in "\r\n" or calls.is_generated(text_page, index) == 1:
            continue
        calls.matrix(text_page, index, reader.matrix_slot)
        length = (found.a * found.a + found.b * found.b) ** 0.5 or 1.0
        dx, dy = found.a / length, found.b / length
        size = calls.font_size(text_page, index) * ((found.c * found.c + found.d * found.d) ** 0.5 or 1.0)
        calls.char_origin(text_page, index, x_slot, y_slot)
        calls.loose_box(text_page, index, loose_slot)
        if abs(dx) >= abs(dy):
            ends = (loose.left * dx, loose.right * dx)
        else:
            ends = (loose.bottom * dy, loose.top * dy)
        char = "-" if char == "\ufffe" else char
        out.append(Glyph(char, x.value, y.value, reader.char_box(index), min(ends), max(ends), dx, dy, size, index))
    return out


def fill(page: Page, reader: TextReader, segments: list[Segment]) -> set[int]:
    """Writes segments into the columns of the raw page, in upright coordinates; the positions of those in white."""
    white: set[int] = set()
    columns = [page[name] for name in ("text", "x0", "y0", "x1", "y1", "base", "size", "style", "turn")]
    texts, lefts, tops, rights, bottoms, bases, sizes, styles, turns = columns
    frame = reader.frame
    quarter, origin_x, _, _, origin_y = frame
    probe = reader.probe
    chars = 0
    for text, (left, bottom, right, top), first, last in segments:
        size, style, turn, base = probe(first)
        if last - first > 1:
            other_size, other_style, _, _ = probe(last)
            if other_style != style or other_size != size:
                middle_size, middle_style, _, _ = probe((first + last) // 2)
                style &= other_style & middle_style
                if middle_size == other_size:
                    size = other_size
        if text[-1] == "\ufffe":
            text = text[:-1] + "-"
        if not text.isprintable():
            text = CONTROL.sub("", text).strip()
            if not text:
                continue
        chars += len(text)
        if reader.is_white(first):
            white.add(len(texts))
        texts.append(text)
        if quarter == 0:
            lefts.append(left - origin_x)
            tops.append(origin_y - top)
            rights.append(right - origin_x)
            bottoms.append(origin_y - bottom)
        else:
            x0, y0, x1, y1 = upright(frame, left, bottom, right, top)
            lefts.append(x0)
            tops.append(y0)
            rights.append(x1)
            bottoms.append(y1)
        bases.append(base)
        sizes.append(size)
        styles.append(style)
        turns.append(turn)
    page["chars"] = chars
    return white
