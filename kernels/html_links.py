"""Links and images for the walker over HTML: a link belongs to the block that holds its text, an image is a block and an asset.

The invariant: nothing is fetched; references stay as written, except that the payload of a `data:` URI becomes the image's bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from raydex.ir.document import Link
from raydex.kernels.data_uri import is_data_uri, read_data_uri
from raydex.kernels.drafts import Draft
from raydex.kernels.html_rules import PERMALINKS, SHOWN, visibility
from raydex.kernels.html_state import BREAK, HEADING, NUMBER, OpenLink, Sink, collapse

if TYPE_CHECKING:
    from raydex.kernels.html_walk import HtmlWalk


def end_link(walk: HtmlWalk, ending: Sink | None = None) -> None:
    """The open link closes, or the draft that holds its text does; one around whole blocks belongs to the first."""
    link = walk.link
    if link is None:
        return
    sink = link.sink
    if sink is None:
        if ending is None:
            walk.link = None
        return
    if ending is not None and ending is not sink:
        return
    text = collapse(sink.text(link.at))
    heading = sink.kind == HEADING or sink.draft.metadata.get("role") == "term"
    if heading and text in PERMALINKS and not link.image:
        del sink.pieces[link.at :]
    elif text:
        sink.draft.links.append(Link(link.href, text))
    walk.link = None


def add_image(walk: HtmlWalk, attributes: dict[str, str], start: int, end: int) -> None:
    href = attributes.get("src") or attributes.get("data-src") or attributes.get("srcset", "").strip().partition(" ")[0]
    alt = collapse(attributes.get("alt", "").replace(BREAK, "\ufffd"))
    tiny = attributes.get("width") in ("0", "1") and attributes.get("height") in ("0", "1")
    if not alt and (not href or tiny):
        return
    metadata: dict[str, Any] = {"tag": "img"}
    data = None
    if is_data_uri(href):
        href, data, about = read_data_uri(href)
        metadata |= about
    for name in ("width", "height"):
        found = NUMBER.match(attributes.get(name, ""))
        if found and "%" not in attributes[name]:
            metadata[name] = max(0, int(found.group(1)))
    draft = Draft("image", start, end, alt, metadata, href=href, data=data)
    if walk.link is not None:
        draft.links.append(Link(walk.link.href, alt))
        walk.link.image = True
    walk.add_draft(draft)
    walk.add_space()


def open_link(walk: HtmlWalk, values: dict[str, str]) -> None:
    if walk.visible != SHOWN:
        walk.push("a", values, 0)
        return
    end_link(walk)
    if values and visibility("a", values, False) != SHOWN:
        walk.push("a", values, 0)
    elif values.get("href", "").strip():
        walk.link = OpenLink(values["href"], walk.sink or walk.run)
