"""Header fields of a mail: raw bytes → text, addresses, dates, ids, parameters (RFC 5322, 2047, 2231).

What cannot be decoded stays as written. The invariant: every function is linear in its input and takes any input.
"""

from __future__ import annotations

import binascii
import re
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import unquote_to_bytes

from raydex.ir.errors import InputError
from raydex.kernels.decode import clean, decode

Fields = list[tuple[str, bytes]]
Person = dict[str, str]

PEOPLE = ("from", "sender", "reply-to", "to", "cc", "bcc")
# how a person of a field stands to the mail: names of relations of the graph
RELATIONS = {"from": "SENT", "to": "RECEIVED", "cc": "CC", "bcc": "RECEIVED"}
_ID = re.compile(r"<([^<>\s]+)>")
_WORD = re.compile(r"=\?([^?\s*]{1,60})(?:\*[^?\s]{0,20})?\?([BbQq])\?([^?]*)\?=")
_NOT_BASE64 = bytes(c for c in range(256) if not (chr(c).isalnum() and c < 128) and c not in b"+/=")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|<[^<>]*+>?|[(),;:\\>]|[^"<>(),;:\\]+', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PARAMETER = re.compile(r""";\s*([^\s=;"]+)\s*=\s*("(?:[^"\\]|\\.)*+"?|[^;]*+)""", re.DOTALL)
_EXTENDED = re.compile(r"([^*]+)(?:\*(\d{1,4}))?(\*)?")
_COMMENT = re.compile(r"\([^()]*\)")


def field_text(fields: Fields, name: str) -> str:
    """The first field of that name, decoded, on one line; empty where there is none."""
    raw = next((value for key, value in fields if key == name), b"")
    return " ".join(decode_words(raw_text(raw)).split())


def settle_charset(fields: Fields, charset: str) -> Fields:
    """Fields in UTF-8. Raw bytes of another charset are those of the mail's text, where it names one."""
    if not charset or all(value.isascii() for _, value in fields):
        return fields
    return [(name, value if value.isascii() else _in_utf8(value, charset)) for name, value in fields]


def _in_utf8(value: bytes, charset: str) -> bytes:
    try:
        return decode(value, declared=charset).text.encode()
    except InputError:  # control characters: it stays as it is
        return value


def raw_text(value: bytes) -> str:
    """A field as characters, encoded words left alone. Bytes above 127 are in UTF-8 (`settle_charset`), or in what they speak for."""
    if value.isascii():
        return clean(value.decode("ascii"))
    try:
        return clean(decode(value).text)
    except InputError:
        return clean(value.decode("latin-1"))


def decode_words(text: str) -> str:
    """Encoded words as text. Neighbours join without the space between them, and as bytes: a character may begin in one of them and end
    in the next."""
    if "=?" not in text:
        return text
    out: list[str] = []
    run: list[bytes] = []
    written: list[str] = []
    charset = ""
    at = 0

    def flush() -> None:
        if run:
            try:
                out.append(decode(b"".join(run), declared=charset).text)
            except InputError:
                out.append(" ".join(written))
            run.clear()
            written.clear()

    for found in _WORD.finditer(text):
        gap = text[at : found.start()]
        at = found.end()
        if not run or gap.strip() or found[1].lower() != charset:
            joined = bool(run) and not gap.strip()
            flush()
            out.append("" if joined else gap)
        charset = found[1].lower()
        run.append(_word_bytes(found[2], found[3]))
        written.append(found[0])
    flush()
    out.append(text[at:])
    return clean("".join(out))


def _word_bytes(kind: str, body: str) -> bytes:
    raw = body.encode("utf-8", "replace")
    return decode_base64(raw) if kind in "Bb" else binascii.a2b_qp(raw, header=True)


def decode_base64(data: bytes) -> bytes:
    """Whatever is base64 in it: foreign bytes are skipped, missing padding is added, several padded runs follow one another."""
    kept = data.translate(None, _NOT_BASE64)
    out = []
    for run in re.split(b"=+", kept):
        whole = run[:-1] if len(run) % 4 == 1 else run
        if whole:
            out.append(binascii.a2b_base64(whole + b"=" * (-len(whole) % 4)))
    return b"".join(out)


def addresses(text: str) -> list[Person]:
    """{name, address} of a list of mailboxes or groups. A comma in a name that nobody quoted does not make two people of one."""
    out: list[Person] = []
    name: list[str] = []
    comment: list[str] = []
    address = ""
    pending: list[str] = []
    depth = 0
    quoted = False

    def flush(by_comma: bool) -> None:
        nonlocal address, quoted
        shown = " ".join("".join(name).split())
        mailbox = address
        if not mailbox and "@" in shown:
            mailbox, shown = shown.replace(" ", ""), ""
        shown = decode_words(shown) or decode_words(" ".join("".join(comment).split()))
        if by_comma and shown and not mailbox and not quoted:
            pending.append(shown)
        else:
            if address and shown and len(pending) == 1:
                shown = f"{pending.pop()}, {shown}"
            out.extend({"name": one, "address": ""} for one in pending)
            pending.clear()
            if shown or mailbox:
                out.append({"name": shown, "address": mailbox})
        name.clear()
        comment.clear()
        address, quoted = "", False

    for token in _TOKEN.findall(text):
        first = token[0]
        if first == "(" or depth:
            depth += (first == "(") - (first == ")")
            if depth and not (first == "(" and depth == 1):
                comment.append(token)
        elif first == '"':
            name.append(_ESCAPED.sub(r"\1", token[1:].removesuffix('"')))
            quoted = True
        elif first == "<":
            address = token[1:].removesuffix(">").rpartition(":")[2].strip() or address
        elif first == ",":
            flush(True)
        elif first == ";":
            flush(False)
        elif first == ":" and not address and "@" not in "".join(name):
            name.clear()
        elif first not in "\\>)":
            name.append(token)
    flush(False)
    return out


def written(person: Person) -> str:
    """As people write it: name <address>."""
    return f"{person['name']} <{person['address']}>" if person["name"] and person["address"] else person["name"] or person["address"]


def parse_date(text: str) -> str | None:
    """ISO 8601 with the offset that the mail gives; None for what is no date."""
    try:
        return parsedate_to_datetime(_COMMENT.sub("", text[:200]).strip()).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def parameters(text: str) -> tuple[str, dict[str, str]]:
    """Value of a structured field, lower case, and its parameters: continued, encoded and percent-encoded ones whole."""
    value = text.partition(";")[0].strip().lower()
    pieces: dict[str, list[tuple[int, bool, str]]] = {}
    for found in _PARAMETER.finditer(text):
        raw = found[2].strip()
        if raw.startswith('"'):
            raw = _ESCAPED.sub(r"\1", raw[1:].removesuffix('"'))
        extended = _EXTENDED.fullmatch(found[1])
        if extended is not None:
            key = extended[1].lower()
            pieces.setdefault(key, []).append((int(extended[2] or 0), extended[3] is not None, raw))
    return value, {key: _joined(sorted(runs, key=lambda run: run[0])) for key, runs in pieces.items()}


def _joined(runs: list[tuple[int, bool, str]]) -> str:
    if not any(encoded for _, encoded, _ in runs):
        return decode_words("".join(raw for _, _, raw in runs))
    charset = ""
    data = b""
    for at, encoded, raw in runs:
        if at == 0 and encoded and raw.count("'") >= 2:
            charset, _, raw = raw.split("'", 2)
        data += unquote_to_bytes(raw) if encoded else raw.encode("utf-8", "replace")
    try:
        return decode(data, declared=charset).text if data else ""
    except InputError:
        return data.decode("latin-1")


def mail_headers(fields: Fields) -> dict[str, Any]:
    """The normalised record: people as {name, address}, date in ISO 8601, ids without their brackets."""
    out: dict[str, Any] = {"subject": field_text(fields, "subject")}
    for name in PEOPLE:
        people = [person for key, value in fields if key == name for person in addresses(raw_text(value))]
        if people or name in ("from", "to", "cc"):
            out[name.replace("-", "_")] = people
    out["date"] = parse_date(field_text(fields, "date"))
    own = field_text(fields, "message-id")
    out["message_id"] = next(iter(_ID.findall(own)), own)
    out["in_reply_to"] = _ID.findall(field_text(fields, "in-reply-to"))
    out["references"] = _ID.findall(field_text(fields, "references"))
    return out


def participants(headers: dict[str, Any]) -> list[dict[str, str]]:
    """Who stands in which relation to the mail."""
    return [{"relation": relation, **person} for name, relation in RELATIONS.items() for person in headers.get(name, [])]


def header_text(headers: dict[str, Any]) -> str:
    """The headers as a reader sees them above the mail."""
    lines = [
        f"{name.capitalize()}: {', '.join(written(person) for person in headers[name])}"
        for name in ("from", "to", "cc", "bcc")
        if headers.get(name)
    ]
    return "\n".join([*lines, f"Date: {headers['date']}"] if headers["date"] else lines)
