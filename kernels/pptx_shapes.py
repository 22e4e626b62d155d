"""One slide's tree of shapes → drafts in reading order: texts, tables, charts, diagrams, pictures, each with its slide, shape and box.

The title comes first, for it opens the slide's section; footers, dates and slide numbers are furniture and only counted. The invariant:
every other text of the tree stands in one draft, and an object whose content is not read is named among the losses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from raydex.ir.document import Link
from raydex.kernels.chart import CX, C, chart_tables, read_chart
from raydex.kernels.drafts import Draft, check_count
from raydex.kernels.image_size import describe_image
from raydex.kernels.package import Relation
from raydex.kernels.pptx_frames import DGM, read_diagram, read_table
from raydex.kernels.pptx_layout import FURNITURE, TITLES, Layout, P
from raydex.kernels.pptx_parts import DeckParts
from raydex.kernels.pptx_place import NOWHERE, A, Box, Item, Transform, arrange, in_points, is_true, read_box, settle
from raydex.kernels.pptx_text import MC, Levels, Paragraph, R, marker, read_levels, read_paragraphs
from raydex.kernels.request import ParseRequest

GROUPS = 8  # groups in groups that are read as a whole; deeper ones give their shapes to the one above
_SHAPE, _GROUP, _PICTURE, _FRAME, _CONNECTOR = (P + name for name in ("sp", "grpSp", "pic", "graphicFrame", "cxnSp"))
_READ = frozenset((_SHAPE, _GROUP, _PICTURE, _FRAME, _CONNECTOR))
_MEDIA = frozenset(("videoFile", "audioFile", "audioCd", "wavAudioFile", "quickTimeFile"))


class SlideWalk:
    """`numbers` are the slides' numbers by part name; drafts are appended to `drafts`, at the end in reading order."""

    def __init__(
        self,
        parts: DeckParts,
        request: ParseRequest,
        drafts: list[Draft],
        numbers: dict[str, int],
        number: int,
        relations: dict[str, Relation],
        layout: Layout,
    ) -> None:
        self.title = ""
        self.furniture = 0
        self._parts, self._request, self._drafts, self._number = parts, request, drafts, number
        self._relations, self._layout, self._href = relations, layout, parts.hrefs(relations, numbers)
        self._shape = 0
        self._seen = 0
        self._box = NOWHERE
        self._place: dict[str, Any] = {}
        self._about: dict[str, Any] = {}
        self._links: list[Link] = []

    def walk(self, slide: Any) -> None:
        """`slide` is the root of a slide's part."""
        first = len(self._drafts)
        tree = slide.find(f"{P}cSld/{P}spTree")
        background = slide.find(f"{P}cSld/{P}bg")
        if background is not None:
            self._place, self._about, self._links = {"slide": self._number}, {"background": True}, []
            self._pictures(background, "")
        shown = len(self._drafts)
        items = self._collect(tree) if tree is not None else []
        self._drafts[first:] = arrange(self._drafts, items, self._drafts[first:shown])

    def _collect(self, tree: Any) -> list[Item]:
        """Shapes that have something to say, in the order of drawing, and groups of them."""
        root: list[Item] = []
        groups: list[Item] = []
        waiting: list[tuple[Any, Transform, list[Item], int]] = [(child, Transform(), root, 0) for child in reversed(list(tree))]
        while waiting:
            element, transform, target, depth = waiting.pop()
            if element.tag == MC + "AlternateContent":
                waiting += [(child, transform, target, depth) for child in reversed(_alternative(element))]
            elif element.tag == _GROUP:
                xfrm = element.find(f"{P}grpSpPr/{A}xfrm")
                box, inside = read_box(xfrm), transform.inside(xfrm)
                self._open(element, transform.apply(box) if box is not None else None)
                group = Item(NOWHERE) if depth < GROUPS else None
                if group is not None:
                    target.append(group)
                    groups.append(group)
                if self._about.get("alt"):
                    self._item(target, self._alternative_text)
                below = target if group is None else group.members
                waiting += [(child, inside, below, depth + 1) for child in reversed(list(element))]
            elif element.tag in _READ:
                self._read(element, transform, target)
        return settle(root, groups)

    def _read(self, element: Any, transform: Transform, target: list[Item]) -> None:
        mark = element.find(f"./*/{P}nvPr/{P}ph")
        kind = (mark.get("type") or "obj") if mark is not None else ""
        if kind in FURNITURE:
            self.furniture += 1
            return
        inherited = self._layout.inherit(mark)
        own = read_box(element.find(P + "xfrm") if element.tag == _FRAME else element.find(f"{P}spPr/{A}xfrm"))
        box = own or inherited.box
        self._open(element, transform.apply(box) if box is not None else None)
        if element.tag == _FRAME:
            self._item(target, lambda: self._frame(element))
        elif element.tag == _PICTURE:
            self._item(target, lambda: self._picture(element))
        else:
            self._item(target, lambda: self._text(element, kind, inherited.styles))

    def _open(self, element: Any, box: Box | None) -> None:
        """Place, alternative text and link of the shape that is read next."""
        self._seen += 1
        about = element.find(f"./*/{P}cNvPr")
        identity = (about.get("id") or "") if about is not None else ""
        self._shape = int(identity) if identity.isascii() and identity.isdigit() and len(identity) < 11 else self._seen
        self._place = {"slide": self._number, "shape": self._shape}
        self._box = box or NOWHERE
        if box is not None:
            self._place["bbox"] = in_points(box)
        self._about, self._links = {}, []
        if about is None:
            return
        alt = (about.get("descr") or "").strip()
        if alt:
            self._about["alt"] = alt
        if is_true(about.get("hidden")):
            self._about["hidden"] = True
        click = about.find(A + "hlinkClick")
        address = self._href(click) if click is not None else ""
        if address:
            self._links = [Link(address, alt)]

    def _item(self, target: list[Item], read: Callable[[], None]) -> None:
        """Runs `read`; its drafts, if any, become an item where the shape stands."""
        start = len(self._drafts)
        read()
        if len(self._drafts) > start:
            target.append(Item(self._box, start, len(self._drafts)))
        elif self._links:
            self._parts.lose("link_without_text", "a link lies on a shape that holds nothing to read", self._where())

    def _add(self, draft: Draft) -> None:
        draft.metadata = {**draft.metadata, **self._about}
        draft.place = self._place
        draft.links += self._links
        self._links = []
        self._about.pop("alt", None)
        self._drafts.append(draft)
        check_count(self._drafts, self._request)

    def _where(self) -> str:
        return f"slide {self._number} shape {self._shape}"

    def _text(self, element: Any, kind: str, styles: tuple[Levels, ...]) -> None:
        body = element.find(P + "txBody")
        paragraphs: list[Paragraph] = []
        if body is not None:
            own = body.find(A + "lstStyle")
            paragraphs = read_paragraphs(body, (read_levels(own), *styles), self._href, self._number)
        filled = element.find(P + "spPr")
        before = len(self._drafts)
        if filled is not None:
            self._pictures(filled, self._about.get("alt", ""))
        if paragraphs and all(paragraph.is_field for paragraph in paragraphs):
            self.furniture += 1
        elif kind in TITLES and paragraphs and not self.title:
            self.title = " ".join(" ".join(paragraph.text for paragraph in paragraphs).split())
            links = [link for paragraph in paragraphs for link in paragraph.links]
            self._add(Draft("heading", 0, 0, self.title, {"level": 1}, links))
        else:
            for paragraph in paragraphs:
                self._paragraph(paragraph)
        if not paragraphs and len(self._drafts) == before:
            self._alternative_text()

    def _paragraph(self, paragraph: Paragraph) -> None:
        bullet = paragraph.bullet
        if bullet is None or bullet.kind == "none":
            self._add(Draft("paragraph", 0, 0, paragraph.text, {}, paragraph.links))
            return
        about: dict[str, Any] = {"level": paragraph.level, "ordered": paragraph.number is not None}
        if paragraph.number is not None:
            about |= {"number": paragraph.number, "marker": marker(bullet, paragraph.number)}
        self._add(Draft("list_item", 0, 0, paragraph.text, about, paragraph.links))

    def _alternative_text(self) -> None:
        """What a drawing without text shows, as its author describes it."""
        alt = self._about.pop("alt", "")
        if alt:
            self._add(Draft("paragraph", 0, 0, alt, {"alt_text": True}))

    def _picture(self, element: Any) -> None:
        about = element.find(f"./*/{P}nvPr")
        for media in about if about is not None else ():
            if media.tag.rpartition("}")[2] in _MEDIA:
                relation = self._relations.get(media.get(R + "link") or "")
                if relation is not None and relation.external:
                    self._links.append(Link(relation.target, self._about.get("alt", "")))
                else:
                    self._parts.lose("embedded_media", "sound or film is not read", self._where())
        self._pictures(element, self._about.pop("alt", ""))

    def _pictures(self, holder: Any, alt: str) -> None:
        """The picture of a `blipFill` below `holder`, if any."""
        blip = next(holder.iter(A + "blip"), None)
        if blip is None:
            return
        embedded = self._relations.get(blip.get(R + "embed") or "")
        linked = self._relations.get(blip.get(R + "link") or "")
        if embedded is not None and not embedded.external:
            data = self._parts.picture(embedded.target, self._where())
            about = describe_image(data, embedded.target) if data is not None else {}
            self._add(Draft("image", 0, 0, alt, about, data=data))
        elif linked is not None or embedded is not None:
            self._add(Draft("image", 0, 0, alt, href=(linked or embedded).target))  # type: ignore[union-attr]
        elif alt:
            self._add(Draft("image", 0, 0, alt))

    def _frame(self, element: Any) -> None:
        data = element.find(f"{A}graphic/{A}graphicData")
        content = next(iter(data), None) if data is not None else None
        if content is None:
            return
        if content.tag == A + "tbl":
            rows, links = read_table(content, self._href, self._number)
            self._add(Draft("table", 0, links=links, rows=rows))
        elif content.tag in (C + "chart", CX + "chart"):
            self._chart(content.get(R + "id") or "")
        elif content.tag == DGM + "relIds":
            self._diagram(content.get(R + "dm") or "")
        elif any(True for _ in data.iter(P + "oleObj")):
            program = next((found.get("progId") for found in data.iter(P + "oleObj") if found.get("progId")), "")
            self._parts.lose("embedded_object", f"an embedded object ({program[:80] or 'of no named type'}) is not read", self._where())
            alt = self._about.pop("alt", "")
            for picture in data.iter(_PICTURE):
                self._pictures(picture, alt)
                break
        else:
            self._parts.lose("unknown_graphic", f"a graphic of another kind ({data.get('uri', '')[-60:]}) is not read", self._where())
            self._alternative_text()

    def _related(self, identity: str) -> Any:
        relation = self._relations.get(identity)
        if relation is None or relation.external:
            self._parts.lose("missing_part", "a part that is named is absent", self._where())
            return None
        return self._parts.optional(relation.target, self._where())

    def _chart(self, identity: str) -> None:
        root = self._related(identity)
        if root is None:
            self._alternative_text()
            return
        chart = read_chart(root)
        caption = "\n".join([*([chart.title] if chart.title else []), *chart.axis_titles])
        tables = chart_tables(chart)
        for rows in tables:
            about: dict[str, Any] = {"chart": list(dict.fromkeys(chart.kinds)), **({"caption": caption} if caption else {})}
            self._add(Draft("table", 0, metadata=about, rows=rows))
            caption = ""
        if not tables:
            self._parts.lose("chart_without_data", "a chart holds no cached data", self._where())
            if caption:
                self._add(Draft("paragraph", 0, 0, caption))

    def _diagram(self, identity: str) -> None:
        root = self._related(identity)
        for level, text in read_diagram(root) if root is not None else ():
            self._add(Draft("list_item", 0, 0, text, {"level": level, "ordered": False}))


def _alternative(element: Any) -> list[Any]:
    """The first alternative that is understood."""
    for choice in element:
        found = [child for child in choice if child.tag in _READ or child.tag == MC + "AlternateContent"]
        if found:
            return found
    return []
