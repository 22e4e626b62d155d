"""Presentations for tests, written part by part: what a library for writing them has no words for."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, field

from document_files import parse_bytes

from raydex.ir.parsed import ParsedFile

PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_P = "http://schemas.openxmlformats.org/presentationml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_C = "http://schemas.openxmlformats.org/drawingml/2006/chart"
_D = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
_MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"
NAMES = f'xmlns:a="{_A}" xmlns:p="{_P}" xmlns:r="{_R}" xmlns:c="{_C}" xmlns:dgm="{_D}" xmlns:mc="{_MC}"'
POINT = 12_700


def rels(*items: tuple[str, str, str]) -> str:
    """(id, kind, target); a target with a scheme is external."""
    mode = {True: 'TargetMode="External"', False: ""}
    lines = "".join(
        f'<Relationship Id="{name}" Type="{_R}/{kind}" Target="{target}" {mode[":" in target]}/>' for name, kind, target in items
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{lines}</Relationships>'


def xfrm(x: float, y: float, width: float = 100, height: float = 20, tag: str = "a:xfrm", inner: str = "", extra: str = "") -> str:
    """In points."""
    a, b, c, d = (round(value * POINT) for value in (x, y, width, height))
    return f'<{tag}{extra}><a:off x="{a}" y="{b}"/><a:ext cx="{c}" cy="{d}"/>{inner}</{tag}>'


def para(text: str, properties: str = "") -> str:
    return f"<a:p>{properties}<a:r><a:t>{text}</a:t></a:r></a:p>"


def shape(
    body: str, *, at: str = "", name: int = 2, ph: str = "", about: str = "", inside: str = "", fill: str = "", styles: str = ""
) -> str:
    mark = f"<p:ph {ph}/>" if ph else ""
    text = f"<p:txBody><a:bodyPr/><a:lstStyle>{styles}</a:lstStyle>{body}</p:txBody>" if body else ""
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="{name}" name="s" {about}>{inside}</p:cNvPr><p:cNvSpPr/><p:nvPr>{mark}</p:nvPr></p:nvSpPr>'
        f"<p:spPr>{at}{fill}</p:spPr>{text}</p:sp>"
    )


def box(text: str, x: float, y: float, width: float = 100, height: float = 20, name: int = 2) -> str:
    return shape(para(text), at=xfrm(x, y, width, height), name=name)


def group(inner: str, at: str = "", name: int = 50, about: str = "") -> str:
    return f'<p:grpSp><p:nvGrpSpPr><p:cNvPr id="{name}" name="g" {about}/></p:nvGrpSpPr><p:grpSpPr>{at}</p:grpSpPr>{inner}</p:grpSp>'


def frame(content: str, kind: str, x: float = 0, y: float = 0, name: int = 9) -> str:
    return (
        f'<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="{name}" name="f"/><p:nvPr/></p:nvGraphicFramePr>{xfrm(x, y, tag="p:xfrm")}'
        f'<a:graphic><a:graphicData uri="urn:x/{kind}">{content}</a:graphicData></a:graphic></p:graphicFrame>'
    )


def picture(identity: str, *, x: float = 0, y: float = 0, alt: str = "", name: int = 8, inside: str = "", media: str = "") -> str:
    return (
        f'<p:pic><p:nvPicPr><p:cNvPr id="{name}" name="p" descr="{alt}">{inside}</p:cNvPr><p:nvPr>{media}</p:nvPr></p:nvPicPr>'
        f"<p:blipFill><a:blip {identity}/></p:blipFill><p:spPr>{xfrm(x, y)}</p:spPr></p:pic>"
    )


def part(root: str, inner: str, extra: str = "") -> str:
    return f"<{root} {NAMES} {extra}>{inner}</{root}>"


def slide(*shapes: str, extra: str = "", before: str = "") -> str:
    return part("p:sld", f"<p:cSld>{before}<p:spTree>{''.join(shapes)}</p:spTree></p:cSld>", extra)


@dataclass
class Deck:
    """Slides by XML; `rels` of slide n by n; `parts` are further parts by name."""

    slides: list[str]
    rels: dict[int, list[tuple[str, str, str]]] = field(default_factory=dict)
    parts: dict[str, str | bytes] = field(default_factory=dict)
    more: str = ""  # inside p:presentation
    links: list[tuple[str, str, str]] = field(default_factory=list)  # relations of the presentation
    order: list[int] | None = None

    def data(self) -> bytes:
        order = self.order or list(range(1, len(self.slides) + 1))
        listed = "".join(f'<p:sldId id="{255 + number}" r:id="s{number}"/>' for number in order)
        named = [(f"s{number}", "slide", f"slides/slide{number}.xml") for number in range(1, len(self.slides) + 1)]
        files: dict[str, str | bytes] = {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": rels(("r1", "officeDocument", "ppt/presentation.xml"), ("r2", "core-properties", "docProps/core.xml")),
            "docProps/core.xml": "<coreProperties/>",
            "ppt/presentation.xml": part(
                "p:presentation", f'<p:sldIdLst>{listed}</p:sldIdLst><p:sldSz cx="9144000" cy="6858000"/>{self.more}'
            ),
            "ppt/_rels/presentation.xml.rels": rels(*named, *self.links),
        }
        for number, text in enumerate(self.slides, 1):
            files[f"ppt/slides/slide{number}.xml"] = text
            if number in self.rels:
                files[f"ppt/slides/_rels/slide{number}.xml.rels"] = rels(*self.rels[number])
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package:
            for name, content in {**files, **self.parts}.items():
                package.writestr(name, content)
        return buffer.getvalue()


def parse_deck(deck: Deck | bytes, **options: object) -> ParsedFile:
    return parse_bytes(deck.data() if isinstance(deck, Deck) else deck, PPTX, **options)  # type: ignore[arg-type]


def parse_slide(*shapes: str, parts: dict[str, str | bytes] | None = None, links: list[tuple[str, str, str]] | None = None) -> ParsedFile:
    """A deck of one slide; `links` are the slide's relations."""
    return parse_deck(Deck([slide(*shapes)], {1: links or []}, parts or {}))
