"""Bytes → text: byte-order mark, UTF-8, the declared encoding, detection on a sample, windows-1252; in this order, each step strict.

The invariant: `Decoded.text == decode_as(data, Decoded.encoding)`, so that an offset into the text can be checked later from the bytes
and the recorded encoding alone. The mark is removed, line ends are untouched, the text is always valid UTF-8 (no lone surrogates).
A NUL stays in the text, so that offsets hold; parsers store U+FFFD for it (`clean`).
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field

from raydex.ir.errors import InputError

BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
SAMPLE_BYTES = 16_384
# encodings that a declaration may name; stateful and escape codecs (utf-7, unicode_escape …) are no page encodings
_MULTIBYTE = ("gb18030", "big5hkscs", "shift_jis", "cp932", "euc_jp", "euc_kr", "cp949")
_LATIN = ("cp1252", "cp1250", "cp1257", "cp1254")
_OTHER = ("cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "iso8859_5", "iso8859_7", "cp874")
_DECLARABLE = frozenset(
    (
        *_MULTIBYTE,
        *_LATIN,
        *_OTHER,
        *(f"iso8859-{n}" for n in range(1, 17) if n != 12),
        *("utf-8", "utf-16-le", "utf-16-be", "iso2022_jp", "hz", "koi8_u", "koi8-r", "cp866", "cp1258", "mac-roman", "cp437"),
    )
)
_STATEFUL = frozenset(("iso2022_jp", "hz"))
_CONTROLS = bytes(c for c in range(32) if c not in (9, 10, 12, 13, 27)) + b"\x7f"
_NOT_HIGH = bytes(range(128))
_HIGH = re.compile(rb"[\x80-\xff]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]{2,}")
_SIGN_IN_WORD = re.compile(r"(?<=[^\W\d_])[¡-¿œŸžšŒŠŽ](?=[^\W\d_])|(?<=\s)[¡-¿](?=[a-z])|(?<=[a-z])[¡-¿](?=[\s,.])")
# what parts words, and signs that stand at the edge of one; the rest of a word must be letters
_BETWEEN_WORDS = re.compile(r"[\s!-/:-@\[-`{-~\u00a0‘’–—]+")
_EDGES = "“”„‚«»‹›…•·¿¡°²³¹®©™€£§±µ¼½¾×÷0123456789"
_NO_LETTERS = frozenset("ƒˆ˜ªº")
_FEW = 9  # bytes beyond ASCII, below which a language model only guesses
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_META = re.compile(rb"""<meta[^>]{0,300}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_XML = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_.:-]{1,40})""")


@dataclass(frozen=True, slots=True)
class Decoded:
    """`encoding` is a name that `decode_as` takes; warnings are stable names: encoding_guessed, invalid_utf8, wrong_bom, nul_replaced."""

    text: str
    encoding: str
    warnings: list[str] = field(default_factory=list)


def decode(data: bytes, *, declared: str | None = None) -> Decoded:
    """Raises InputError (unsupported_media_type) when the bytes are no text."""
    decoded = _decode(data, declared)
    if "\x00" in decoded.text:
        decoded.warnings.append("nul_replaced")
    return decoded


def decode_as(data: bytes, encoding: str) -> str:
    """The text of bytes in a recorded encoding: its mark is removed, bytes that it cannot read become U+FFFD."""
    text = _without_mark(data, encoding).decode(encoding, "replace")
    return text if _is_valid(text) else text.encode("utf-8", "replace").decode("utf-8")


def clean(text: str) -> str:
    """Text that may be stored: U+FFFD for NUL, one for one."""
    return text.replace("\x00", "\ufffd") if "\x00" in text else text


def declared_encoding(data: bytes) -> str | None:
    """What an XML declaration or an HTML meta element says within the first 4096 bytes."""
    head = data[:4096]
    found = _XML.search(head) or _META.search(head)
    return found.group(1).decode("ascii") if found else None


def looks_binary(sample: bytes) -> bool:
    """More than one in fifty bytes is a control character that text does not use. UTF-16 and UTF-32 must be ruled out before."""
    return (len(sample) - len(sample.translate(None, _CONTROLS))) * 50 > len(sample)


def wide_encoding(sample: bytes) -> str | None:
    """utf-16-le or utf-16-be when NULs fill nearly half of the bytes on one side only: Latin text in UTF-16 without a mark."""
    sample = sample[:4096]
    half = len(sample) // 2
    if half < 2 or b"\x00" not in sample:
        return None
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if odd * 10 >= half * 7 and even * 20 <= half:
        return "utf-16-le"
    if even * 10 >= half * 7 and odd * 20 <= half:
        return "utf-16-be"
    return None


def _without_mark(data: bytes, encoding: str) -> bytes:
    """A byte encoding drops any mark: one that speaks of UTF-16 was wrong then."""
    for mark, name in BOMS:
        if data.startswith(mark) and (name == encoding or not encoding.startswith(("utf-16", "utf-32"))):
            return data[len(mark) :]
    return data


def _decode(data: bytes, declared: str | None) -> Decoded:
    warnings: list[str] = []
    marked = next(((mark, name) for mark, name in BOMS if data.startswith(mark)), None)
    if marked is not None and marked[1] != "utf-8":
        body = data[len(marked[0]) :]
        head = body[:4096]
        if not (len(head) >= 8 and head.isascii() and not looks_binary(head)):
            return Decoded(decode_as(data, marked[1]), marked[1])
        warnings.append("wrong_bom")
    body = _without_mark(data, "")
    wide = wide_encoding(body)
    if wide is not None:
        return Decoded(decode_as(data, wide), wide, ["encoding_guessed"])
    if looks_binary(body[:SAMPLE_BYTES]) or (len(body) > SAMPLE_BYTES and looks_binary(body)):
        raise InputError(
            "the content is binary, not text",
            reject_class="unsupported_media_type",
            remedy="Give the file the extension of its real format, or leave it out",
        )
    label = _codec(declared)
    if label in _STATEFUL or (b"\x1b$" in body and body.isascii()):
        name = label or "iso2022_jp"
        try:
            return Decoded(_valid(body.decode(name)), name, warnings)
        except UnicodeError:
            warnings.append("wrong_declared_encoding")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return _decode_foreign(body, label, warnings)
    if label is not None and label != "utf-8" and not body.isascii():
        warnings.append("wrong_declared_encoding")
    return Decoded(text, "utf-8", warnings)


def _decode_foreign(body: bytes, label: str | None, warnings: list[str]) -> Decoded:
    """Bytes that are not UTF-8. Two valid sequences for every broken one speak for damaged UTF-8, and so does it when nothing is broken
    but that surrogates stand in it."""
    text = body.decode("utf-8", "replace")
    if _has_surrogates_alone(body):
        return Decoded(text, "utf-8", [*warnings, "invalid_utf8"])
    broken = text.count("\ufffd") - body.count(b"\xef\xbf\xbd")
    whole = len(text) - (len(body) - len(body.translate(None, _NOT_HIGH))) - broken
    if whole >= 2 * broken or (label == "utf-8" and whole >= broken):
        return Decoded(text, "utf-8", [*warnings, "invalid_utf8"])
    if label is not None and label != "utf-8":
        try:
            return Decoded(_valid(body.decode(label)), label, warnings)
        except UnicodeError:
            warnings = [*warnings, "wrong_declared_encoding"]
    warnings = [*warnings, "encoding_guessed"]
    for name in _guesses(body):
        try:
            return Decoded(_valid(body.decode(name)), name, warnings)
        except UnicodeError:
            continue
    return Decoded(body.decode("cp1252", "replace"), "cp1252", warnings)


def _has_surrogates_alone(body: bytes) -> bool:
    try:
        body.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def has_bidi_controls(text: str) -> bool:
    """Whether it holds marks that make it read otherwise than it stands: they are kept, and said."""
    return not text.isascii() and _BIDI.search(text) is not None


def _guesses(body: bytes) -> list[str]:
    """Codecs to try, most likely first, from a sample around the first high byte.

    High bytes that stand alone among ASCII letters are a Latin alphabet: windows-1252, unless that puts signs inside words, as it
    does to the alphabets of windows-1250. So are those of words that read as Latin ones. Other pairs and runs are another script, and a
    language model decides; of a few bytes it knows nothing.
    """
    found = _HIGH.search(body)
    first = found.start() if found else 0
    sample = body[max(0, first - 256) : first + SAMPLE_BYTES]
    if len(sample) < len(body):
        # a character that the sample's end cuts must not rule its encoding out
        cut = max(sample.rfind(b"\n"), sample.rfind(b" "))
        sample = sample[:cut] if cut > len(sample) // 2 else sample
    high = len(sample.translate(None, _NOT_HIGH))
    if sum(len(run) for run in _HIGH_RUN.findall(sample)) * 2 < high:
        signs = len(_SIGN_IN_WORD.findall(sample.decode("cp1252", "replace")))
        return ["cp1250", "cp1252"] if signs > 1 and signs * 5 >= high else ["cp1252"]
    western, central = _latin_share(sample.decode("cp1252", "replace")), _latin_share(sample.decode("cp1250", "replace"))
    if max(western, central) >= 0.5:
        return ["cp1250", "cp1252"] if central > western else ["cp1252", "cp1250"]
    from charset_normalizer import from_bytes

    candidates = list(_MULTIBYTE + _OTHER)
    best = from_bytes(sample, steps=4, chunk_size=512, cp_isolation=candidates, preemptive_behaviour=False, enable_fallback=False)
    names = [match.encoding for match in best][:4]
    return ["cp1252", *names] if high < _FEW and not any(match.coherence for match in best) else names


def _latin_share(text: str) -> float:
    """The share of the characters beyond ASCII, signs at the edges of words apart, that stand in words which read as Latin ones: letters
    alone, a good part of them of ASCII, no capitals behind small letters."""
    good = total = 0
    for word in _BETWEEN_WORDS.split(text):
        if word.isascii() or not (core := word.strip(_EDGES)) or core.isascii():
            continue
        high = sum(not sign.isascii() for sign in core)
        total += high
        cased = core.islower() or core[1:].islower() or core.replace("ß", "").isupper()
        mixed = high <= 3 * (len(core) - high) or (len(core) == 1 and core == word)
        if cased and mixed and core.isalpha() and _NO_LETTERS.isdisjoint(core):
            good += high
    return good / total if total else 0.0


def _codec(label: str | None) -> str | None:
    """The codec of a declared label, None for one that is unknown or no page encoding. Latin-1 means windows-1252, as browsers read it."""
    if not label:
        return None
    try:
        name = codecs.lookup(label.strip()).name
    except LookupError:
        return None
    if name in ("iso8859-1", "ascii"):
        return "cp1252"
    if name in ("gb2312", "gbk"):
        return "gb18030"
    if name in ("utf-16", "utf-16-le", "utf-16-be"):
        # a declaration that can be read byte by byte is not written in UTF-16
        return "utf-8"
    return name if name in _DECLARABLE else None


def _is_valid(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _valid(text: str) -> str:
    if not text.isascii():
        text.encode("utf-8")
    return text
