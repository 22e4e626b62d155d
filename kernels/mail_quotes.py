"""Where a mail's plain text quotes another mail or closes with a signature: patterns and spans, no blocks.

Sources: RFC 3676 (quote marks, signature line, flowed text); the lines that mail programs write above what they quote, by language.
The invariant: every pattern looks at a bounded window of a line start, so that a search is linear.
"""

from __future__ import annotations

import re
from bisect import bisect_left

_WROTE = (
    r"wrote|writes|schrieb[^\r\n]{0,80}|schreef[^\r\n]{0,80}|skrev[^\r\n]{0,80}|a écrit|escribió|ha scritto|escreveu|napisał(?:\(a\))?|"
    r"написал(?:\(а\))?|пишет"
)
_DAY = r"(?:On|Am|Le|El|Il|Em|Op|Den|Dnia|W dniu|Mon|Tue|Wed|Thu|Fri|Sat|Sun|\d{1,4}[./-]\d)\b"
# "On Monday, Anna <a@x> wrote:", over two lines at most
ATTRIBUTION = re.compile(
    rf"^[ \t]{{0,4}}(?:{_DAY}[^\r\n]{{0,200}}(?:\r?\n[^\r\n]{{0,200}})?(?:{_WROTE})[ \t\xa0]?:"
    rf"|[^\r\n]{{1,120}}(?:写道|寫道)[ \t]?[:：])[ \t]*\r?$",
    re.MULTILINE,
)
_ORIGINAL = (
    r"Original Message|Original Appointment|Forwarded [Mm]essage|Reply message|Ursprüngliche Nachricht|Original-Nachricht|"
    r"Weitergeleitete Nachricht|Message d'origine|Message transféré|Mensaje original|Mensaje reenviado|Messaggio originale|"
    r"Messaggio inoltrato|Mensagem original|Oorspronkelijk bericht|Doorgestuurd bericht|原始邮件|原始郵件|转发邮件|转发的邮件|转发邮件信息"
)
_FROM = r"(?:From|Von|De|Da|Van|Från|Fra|发件人|寄件者|差出人)"
_SENT = r"(?:Sent|Date|Gesendet|Datum|Envoyé|Enviado(?: el)?|Data|Inviato|Verzonden|Skickat|Sendt|发送时间|发件日期|日期|送信日時)"
_HEAD = rf"\*?{_FROM}[ \t\xa0]?[:：]\*?[^\r\n]{{1,300}}\r?\n(?:[^\r\n]{{1,300}}\r?\n){{0,2}}?\*?{_SENT}[ \t\xa0]?[:：][^\r\n]{{0,300}}"
# all below one of these is another mail
DIVIDER = re.compile(
    rf"^[ \t]{{0,4}}(?:[-_]{{2,40}}[ \t]?(?:{_ORIGINAL})[ \t]?[-_]{{2,40}}|Begin forwarded message:|{_HEAD})[ \t]*\r?$",
    re.MULTILINE,
)
SIGNATURE = re.compile(r"^(?:-- |--\xa0)\r?$", re.MULTILINE)
SHORT_SIGNATURE = re.compile(r"^--\r?$", re.MULTILINE)  # a mark that lost its space: believed above a few lines only
_SHORT = 800
# lines that take leave, where nothing but a few short lines follows
_LEAVES = (
    "(?:(?:with )?(?:kind|best|warm|many)(?:est)? )?(?:regards|wishes)|best|cheers",
    "(?:many )?thanks(?: and (?:kind |best )?regards)?",
    "(?:yours )?(?:sincerely|faithfully|truly)(?: yours)?",
    "(?:mit )?(?:freundliche|beste|viele|herzliche|liebe)[nrm]? gr(?:ü|u)(?:ß|ss)(?:en|e)?",
    "(?:bien )?cordialement|bien à vous|salutations(?: distinguées)?",
    "(?:un )?saludos?(?: cordial(?:es)?)?|(?:cordiali|distinti) saluti|atenciosamente",
    "met vriendelijke groet(?:en)?|med vänliga? hälsning(?:ar)?|med venlig hilsen",
    "с уважением|z poważaniem|此致|顺颂商祺|敬上",
)
_CLOSING = re.compile(rf"^[ \t]{{0,4}}(?:{'|'.join(_LEAVES)})[,!.，。]?[ \t]*\r?$", re.MULTILINE | re.IGNORECASE)
_NAME_LINES, _NAME_CHARS = 6, 80
_MARKED = re.compile(r"^[ \t]?>", re.MULTILINE)
MARKS = re.compile(r"[ \t]?>(?:[ \t]?>)*")
ARMOUR = re.compile(r"^-----BEGIN PGP (SIGNED MESSAGE|SIGNATURE|MESSAGE)-----[ \t]*\r?$", re.MULTILINE)
_ARMOUR_END = {
    "SIGNATURE": re.compile(r"^-----END PGP SIGNATURE-----[ \t]*\r?$", re.MULTILINE),
    "MESSAGE": re.compile(r"^-----END PGP MESSAGE-----[ \t]*\r?$", re.MULTILINE),
    "SIGNED MESSAGE": re.compile(r"\r?\n[ \t]*\r?$", re.MULTILINE),
}

Span = tuple[int, int]


def quoted_spans(text: str) -> list[Span]:
    """What is quoted without quote marks: a line that introduces marked lines, alone; else all from where another mail begins."""
    spans: list[Span] = []
    divider = DIVIDER.search(text)
    tail = divider.start() if divider is not None else len(text)
    for found in ATTRIBUTION.finditer(text, 0, tail):
        below = found.end()
        while text[below : below + 1].isspace():
            below += 1
        if text[below : below + 1] != ">":
            tail = found.start()
            break
        spans.append((found.start(), found.end()))
    return [*spans, (tail, len(text))] if tail < len(text) else spans


def signature_spans(text: str, quoted: list[Span]) -> list[Span]:
    """From each signature mark outside of quoted spans to the next mark, or to the next quoted line or span; without a mark, from a line
    that takes leave above a few short ones."""
    spans: list[Span] = []
    tail = quoted[-1][0] if quoted and quoted[-1][1] == len(text) else len(text)
    marks = list(SIGNATURE.finditer(text, 0, tail))
    if not marks:
        marks = list(SHORT_SIGNATURE.finditer(text, max(0, tail - _SHORT), tail))[-1:]
    if not marks:
        marks = [one for one in _CLOSING.finditer(text, max(0, tail - _SHORT), tail) if _only_names(text[one.end() : tail])][:1]
    heads = [low for low, _ in quoted]
    starts = [found.start() for found in marks] + [tail]
    for at, start in enumerate(starts[:-1]):
        head = bisect_left(heads, start)
        end = min(starts[at + 1], heads[head] if head < len(heads) else tail)
        spans.append((start, _before_quote(text, start, end)))
    return spans


def _only_names(text: str) -> bool:
    """Whether these are the lines below a leave-taking: a name, a firm, a number."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return 1 <= len(lines) <= _NAME_LINES and all(len(line) <= _NAME_CHARS and not line.startswith(">") for line in lines)


def _before_quote(text: str, start: int, end: int) -> int:
    found = _MARKED.search(text, start, end)
    return found.start() if found is not None else end


def armour_spans(text: str) -> tuple[list[Span], list[str]]:
    """PGP armour: the lines that are no text, and what kinds there are. The text that a cleartext signature covers stays."""
    spans: list[Span] = []
    kinds: list[str] = []
    at = 0
    endless: set[str] = set()
    while (found := ARMOUR.search(text, at)) is not None:
        end = None if found[1] in endless else _ARMOUR_END[found[1]].search(text, found.end())
        if end is None:
            endless.add(found[1])
        at = end.end() if end is not None else found.end()
        spans.append((found.start(), at))
        kinds.append(found[1])
    return spans, kinds
