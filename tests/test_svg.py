"""SVG: words and pictures of a drawing, its size, what is left out, hostile drawings."""

from __future__ import annotations

from base64 import b64encode

import pytest
from document_files import kinds, parse_bytes
from hypothesis import given
from hypothesis import strategies as st

from raydex.ir.parsed import ParsedFile
from raydex.kernels.limits import Limits

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x03\x00\x00\x00\x02\x08\x02\x00\x00\x00"
SPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def read(body: str, attributes: str = "", limits: Limits | None = None) -> ParsedFile:
    return parse_bytes(f"<svg {SPACES} {attributes}>{body}</svg>", "image/svg+xml", "plan.svg", limits)


def events(parsed: ParsedFile) -> dict[str, str]:
    return {event.name: event.message for event in parsed.events}


def test_words_of_a_drawing_in_the_order_of_the_file() -> None:
    source = (
        "<title>Flow</title><desc>How  it\n flows</desc><g><title>Tank</title>"
        '<text x="1" y="2">Größe <tspan font-weight="bold">A</tspan>1<tspan x="1" dy="2">second</tspan></text></g>'
        '<a href="https://x.org/1"><text>linked</text></a><text>see <a xlink:href="#b">part</a></text><path d="M0 0L1 1"/>'
    )
    parsed = read(source)
    assert kinds(parsed) == [
        ("heading", "Flow"),
        ("paragraph", "How it flows"),
        ("paragraph", "Tank"),
        ("paragraph", "Größe A1\nsecond"),
        ("paragraph", "linked"),
        ("paragraph", "see part"),
    ]
    assert parsed.document is not None and (parsed.document.title, parsed.document.parser) == ("Flow", "svg")
    assert [block.metadata.get("role") for block in parsed.blocks] == [None, "description", "title", None, None, None]
    assert [(link.href, link.text) for block in parsed.blocks for link in block.links] == [("https://x.org/1", ""), ("#b", "part")]
    whole = f"<svg {SPACES} >{source}</svg>"
    assert parsed.blocks[3].locator.xpath == "/svg/g[1]/text[1]"
    for block in parsed.blocks:
        excerpt = block.locator.slice_text(whole) or ""
        assert excerpt.startswith("<") and excerpt.endswith(">") and block.text.split()[-1] in excerpt


def test_size_and_view_box() -> None:
    def size(attributes: str) -> dict[str, object]:
        document = read("<text>a</text>", attributes).document
        assert document is not None
        return document.metadata

    assert size('width="40mm" height="2e1" viewBox="0 0 800 400"') == {
        "width": 40.0,
        "width_unit": "mm",
        "height": 20.0,
        "view_box": [0.0, 0.0, 800.0, 400.0],
    }
    assert size('width="100%" viewBox="-1,-2, 30 ,40"') == {"width": 30.0, "height": 40.0, "view_box": [-1.0, -2.0, 30.0, 40.0]}
    assert size('width="wide" viewBox="0 0 nan inf"') == {}


def test_embedded_pictures_are_assets_and_others_are_only_named() -> None:
    inner = b64encode(PNG).decode()
    parsed = read(
        f'<image xlink:href="data:image/png;base64,{inner}" aria-label="logo"/><image href="http://10.0.0.1/a.png"/><image href="data:,"/>'
    )
    assert [(asset.media_type, asset.href, asset.alt, asset.width, asset.height) for asset in parsed.assets] == [
        ("image/png", "data:image/png;base64,", "logo", 3, 2),
        ("", "http://10.0.0.1/a.png", "", None, None),
        ("", "data:,", "", None, None),
    ]
    assert parsed.blobs == {parsed.assets[0].asset_id: PNG}
    assert parsed.document is not None and parsed.document.warnings == ["broken_image"]


def test_scripts_handlers_and_notes_for_programs_are_left_out_and_counted() -> None:
    parsed = read(
        '<script>alert("<text>no</text>")</script><metadata><r><d>Inkscape</d></r></metadata><style>text{fill:red}</style>'
        '<text onclick="a()" onload="b()">yes<script>no</script></text>'
    )
    assert kinds(parsed) == [("paragraph", "yes")]
    found = events(parsed)
    assert found["svg_scripts_dropped"].startswith("4 of them") and found["svg_metadata_dropped"].startswith("1 of them")


@pytest.mark.parametrize(
    ("body", "texts", "dropped"),
    [
        ('<text display="none">no</text><text>yes</text>', ["yes"], {"svg_hidden_dropped": 1}),
        ('<g style="fill:red; display : none"><text>no</text><text visibility="visible">no</text></g>', [], {"svg_hidden_dropped": 2}),
        ('<g visibility="hidden"><text>no<tspan visibility="visible">yes</tspan></text></g>', ["yes"], {"svg_hidden_dropped": 1}),
        ('<text>yes <tspan style="visibility:collapse">no</tspan></text>', ["yes"], {"svg_hidden_dropped": 1}),
        ('<text style="backface-visibility:hidden;--display:none">yes</text>', ["yes"], {}),
        ("<defs><text>no</text></defs><symbol><text>no</text></symbol>", [], {"svg_definitions_dropped": 2}),
        ('<clipPath id="c"><text>no</text></clipPath>', [], {"svg_definitions_dropped": 1}),
        ('<defs><g id="a"><text>yes</text></g><text>no</text></defs><use xlink:href="#a"/>', ["yes"], {"svg_definitions_dropped": 1}),
        ('<symbol id="s"><text>yes</text></symbol><svg:use xmlns:svg="s" href="#s"/>', ["yes"], {}),
        ('<g display="none"><image href="a.png"/><title>Kept</title></g>', ["Kept"], {"svg_hidden_dropped": 1}),
        ("<defs><symbol><title>Kept</title><text>no</text></symbol></defs>", ["Kept"], {"svg_definitions_dropped": 1}),
    ],
)
def test_text_that_is_not_drawn_is_left_out_and_counted(body: str, texts: list[str], dropped: dict[str, int]) -> None:
    parsed = read(f"<title>T</title>{body}")
    assert [block.text for block in parsed.blocks[1:]] == texts
    assert {name: int(said.split()[0]) for name, said in events(parsed).items()} == dropped


def test_a_foreign_object_gives_its_text() -> None:
    parsed = read('<foreignObject><div xmlns="http://www.w3.org/1999/xhtml"><p>One</p><p>two <b>bold</b></p></div></foreignObject>')
    assert kinds(parsed) == [("paragraph", "One\ntwo bold")]


@pytest.mark.parametrize(
    "data",
    [
        '<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><svg><text>&b;</text></svg>',
        '<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg><text>&x;</text></svg>',
        "<svg><text>cut",
        "<svg",
    ],
)
def test_hostile_and_broken_drawings_say_so(data: str) -> None:
    parsed = parse_bytes(data, "image/svg+xml", "x.svg")
    assert parsed.document is not None and parsed.blocks == []
    assert {"broken_values", "no_semantic_blocks"} <= set(parsed.document.warnings)
    assert "parse_error" in events(parsed)


def test_what_stands_before_a_fault_is_kept() -> None:
    parsed = parse_bytes("<svg><text>kept</text><text>lost</svg>", "image/svg+xml", "x.svg")
    assert kinds(parsed) == [("paragraph", "kept")]


def test_depth_and_number_of_blocks_are_limited() -> None:
    assert read("<g>" * 500 + "</g>" * 500).rejects[0].reject_class == "too_deep"
    assert read("<text>a</text>" * 12, limits=Limits(blocks=10)).rejects[0].reject_class == "too_many_blocks"


@given(
    st.lists(
        st.sampled_from(("<text>", "</text>", "<a href='u'>", "</a>", "<tspan x='1'>", "</tspan>", "<title>", "</title>", "w ", "&x;"))
    )
)
def test_any_drawing_ends_in_a_document(parts: list[str]) -> None:
    assert read("".join(parts)).document is not None
