"""What HTML elements mean to the walker: which are chrome, which break lines, which are hidden. Data and small tests, no state.

Sources: seed 1 (script, style, nav, aside, hidden regions, and the page's own header and footer are no content); HTML Standard, "the rules
for parsing tokens in HTML content" (implied end tags) and "rendering" (elements that are not shown).
"""

from __future__ import annotations

import re
from functools import lru_cache

VOID = frozenset(
    (
        *("area", "base", "br", "col", "embed", "frame", "hr", "img", "image", "input", "keygen"),
        *("link", "meta", "param", "source", "track", "wbr"),
    )
)
HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
LISTS = frozenset(("ul", "ol", "menu", "dir", "dl"))
ITEMS = frozenset(("li", "dt", "dd"))
CELLS = frozenset(("td", "th"))
TABLE_PARTS = frozenset(("table", "caption", "colgroup", "thead", "tbody", "tfoot", "tr", "td", "th"))
MAIN = frozenset(("main", "article", "section"))
# boxes on a line of their own; a new one ends an open paragraph
BLOCKS = frozenset(
    (
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "details",
        "dialog",
        "div",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "frameset",
        "header",
        "hgroup",
        "html",
        "legend",
        "listing",
        "main",
        "nav",
        "noscript",
        "optgroup",
        "p",
        "pre",
        "search",
        "section",
        "summary",
        "template",
    )
)
# boxes inside a line: their text does not run into the text beside them
BOXES = frozenset(
    ("button", "select", "option", "textarea", "label", "input", "svg", "video", "audio", "canvas", "object", "iframe", "meter")
)
DROPPED = frozenset(
    (
        "nav",
        "footer",
        "aside",
        "template",
        "noscript",
        "search",
        "canvas",
        "audio",
        "video",
        "datalist",
        "annotation",
        "annotation-xml",
        "rp",
    )
)
# elements of running text: without attributes that hide them they change nothing
PHRASING = frozenset(
    (
        *("span", "b", "i", "em", "strong", "u", "small", "big", "font", "tt", "var", "kbd", "samp", "cite", "q"),
        *("abbr", "acronym", "dfn", "ins", "mark", "bdi", "bdo", "data", "ruby", "rt", "rb", "nobr", "code"),
    )
)
# landmarks by role, and the elements that they stand for
_LANDMARKS = {"navigation": "nav", "banner": "header", "contentinfo": "footer", "complementary": "aside", "search": "search"}
# what only stands in for text that is shown: nothing is lost with it
STAND_INS = frozenset(("annotation", "annotation-xml", "rp"))
DROPPED_CLASSES = frozenset(("linenos", "lineno"))
PERMALINKS = frozenset(("¶", "#", "§", "🔗", "\uf0c1", "Permalink", ""))

SHOWN, HEADINGS_ONLY, HIDDEN = range(3)

# a cheap test before attributes are taken apart
_TELLING = re.compile(r"hidden|display\s*:|visibility|role\s*=|lineno|footnote|highlight|lang|brush|sourcecode", re.IGNORECASE)
# the properties by their whole names: `backface-visibility` hides nothing
_INVISIBLE = re.compile(r"(?<![\w-])(?:display\s*+:\s*+none|(?:content-)?visibility\s*+:\s*+(?:hidden|collapse))(?![\w-])", re.IGNORECASE)
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language|lang|highlight|brush|sourceCode|highlight-source)(?:[-:]|:\s*|\s+)([A-Za-z0-9_+#.]+[A-Za-z0-9_+#.-]*)"
)
_NO_LANGUAGE = frozenset(("default", "none", "text", "plain", "plaintext", "txt", "nohighlight", "notranslate"))


@lru_cache(maxsize=8192)
def may_tell(attributes: str) -> bool:
    """Whether the attributes as written may hide the element or name a programming language."""
    return _TELLING.search(attributes) is not None


def visibility(name: str, attributes: dict[str, str], in_main: bool) -> int:
    """SHOWN, HIDDEN, or HEADINGS_ONLY for the page's own header, which may hold its title. Inside main content a header or footer belongs
    to that content (HTML Standard, 4.3.8 and 4.3.9)."""
    if _is_hidden(attributes):
        return HIDDEN
    role = attributes.get("role", "").strip().lower()
    classes = attributes.get("class", "")
    if name == "aside" and ("footnote" in role or "footnote" in classes):
        return SHOWN
    if name == "dialog":
        return SHOWN if "open" in attributes else HIDDEN
    landmark = _LANDMARKS.get(role, "")
    if landmark == "header" or (name == "header" and not landmark and not in_main):
        return HEADINGS_ONLY
    if landmark or (name in DROPPED and not (name == "footer" and in_main)):
        return HIDDEN
    return HIDDEN if classes and not DROPPED_CLASSES.isdisjoint(classes.split()) else SHOWN


def _is_hidden(attributes: dict[str, str]) -> bool:
    hidden = attributes.get("hidden")
    if hidden is not None and hidden.lower() != "until-found":
        return True
    return attributes.get("aria-hidden", "").strip().lower() == "true" or _INVISIBLE.search(attributes.get("style", "")) is not None


def what_hides(name: str, attributes: dict[str, str]) -> str:
    """For an element that is HIDDEN, as what: the tag, that of its landmark, `line numbers`, or `hidden`."""
    if _is_hidden(attributes):
        return "hidden"
    landmark = _LANDMARKS.get(attributes.get("role", "").strip().lower(), "")
    return landmark or (name if name in DROPPED or name == "dialog" else "line numbers")


def language_of(classes: str) -> str:
    """Programming language by class: language-x, lang-x, highlight-x, brush: x, sourceCode x; empty when none is named."""
    found = _LANGUAGE.search(classes)
    name = found.group(1).lower() if found else ""
    if not name and classes.split()[:1] == ["rust"]:
        name = "rust"
    return "" if name in _NO_LANGUAGE else name
