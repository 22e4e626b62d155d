"""What the tests of document parsers share: a request by bytes or text, and views of the result that read well in an assertion."""

from __future__ import annotations

from pathlib import Path

from raydex.ir.ids import content_hash
from raydex.ir.parsed import ParsedFile, to_plain
from raydex.kernels.decode import decode
from raydex.kernels.limits import Limits
from raydex.kernels.members import member_id, member_path
from raydex.kernels.parse import parse, rejected
from raydex.kernels.request import OUTERMOST, Nesting, ParseRequest

PAGES = Path(__file__).parent / "fixtures" / "pages"
CORPUS = Path(__file__).parents[1] / ".." / "shared" / "corpora" / "docs"


def parse_bytes(data: bytes | str, media_type: str, path: str = "page", limits: Limits | None = None) -> ParsedFile:
    raw = data.encode() if isinstance(data, str) else data
    return parse(ParseRequest("rec_test", content_hash(raw), path, media_type, raw, limits=limits or Limits()))


def children(parsed: ParsedFile, limits: Limits | None = None, around: Nesting = OUTERMOST) -> list[ParsedFile]:
    """The members of a container, each parsed or rejected as a run does it."""
    nesting = around.inside(parsed.media_type)
    found = []
    for member in parsed.members:
        request = ParseRequest(
            member_id(parsed.record_id, member.step),
            content_hash(member.data),
            member_path(parsed.path, member.name),
            member.media_type,
            member.data,
            limits=limits or Limits(),
            nesting=nesting,
            inside=member.inside,
        )
        deep = "too_deep" if nesting.too_deep(request.limits) else ""
        refused = member.reject_class or deep
        found.append(rejected(request, refused, member.error) if refused else parse(request))
    return found


def parse_html_page(data: bytes | str, **options: object) -> ParsedFile:
    return parse_bytes(data, "text/html", **options)  # type: ignore[arg-type]


def parse_markdown_page(data: bytes | str, **options: object) -> ParsedFile:
    return parse_bytes(data, "text/markdown", **options)  # type: ignore[arg-type]


def parse_plain(data: bytes | str, **options: object) -> ParsedFile:
    return parse_bytes(data, "text/plain", **options)  # type: ignore[arg-type]


def kinds(parsed: ParsedFile) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in parsed.blocks]


def sources(parsed: ParsedFile, data: bytes | str) -> list[str]:
    """The source's own text at every block's locator."""
    text = decode(data.encode() if isinstance(data, str) else data).text
    return [block.locator.slice_text(text) or "" for block in parsed.blocks]


def plain(parsed: ParsedFile) -> object:
    """What a golden file holds: the whole result without the ids that repeat its input."""
    value = to_plain(parsed)
    assert isinstance(value, dict)
    return {key: value[key] for key in ("document", "blocks", "assets", "events", "rejects")}
