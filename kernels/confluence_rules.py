"""What Confluence's storage format means to its walker: kinds of macros, emoticons, and references to other content. Data, no state.

Sources: Atlassian, "Confluence Storage Format" (elements, resource identifiers, emoticons) and its list of macros. A reference is written
in Confluence's own short notation, since storage format holds no addresses: `SPACE:Title#anchor`, `Title^file`, `~user`, `$id`.
"""

from __future__ import annotations

import re

# boxes on lines of their own, whose end tags close what is open inside
BODIES = frozenset(("ac:rich-text-body", "ac:layout", "ac:layout-section", "ac:layout-cell", "ac:adf-content", "ac:caption"))
MACROS = frozenset(("ac:structured-macro", "ac:macro", "ac:adf-node"))
# elements whose text says something about what is around them and is not shown
VALUES = frozenset(
    ("ac:parameter", "ac:default-parameter", "ac:adf-attribute", "ac:adf-parameter", "ac:task-id", "ac:task-uuid", "ac:task-status")
)
LINK_BODIES = frozenset(("ac:plain-text-link-body", "ac:link-body"))

CODE_MACROS = frozenset(("code", "noformat", "code-block"))
PANEL_MACROS = frozenset(("panel", "info", "note", "warning", "tip", "success", "error"))
EXPAND_MACROS = frozenset(("expand", "ui-expand"))
# macros that show their body and nothing else
PLAIN_MACROS = frozenset(("section", "column", "excerpt", "details", "div", "span", "toc-zone", "chart", "table-filter", "status", "jira"))
# macros that show other content, or a file, by its name
SHOWING_MACROS = frozenset(
    ("include", "excerpt-include", "view-file", "viewdoc", "viewpdf", "viewppt", "viewxls", "multimedia", "profile", "widget", "iframe")
)
# macros that Confluence fills when the page is looked at: the page itself says nothing there
DYNAMIC_MACROS = frozenset(
    (
        *("toc", "children", "pagetree", "pagetreesearch", "livesearch", "attachments", "space-attachments", "gallery", "contentbylabel"),
        *("recently-updated", "recently-updated-dashboard", "recently-used-labels", "popular-labels", "related-labels", "listlabels"),
        *("contributors", "contributors-summary", "change-history", "navmap", "blog-posts", "tasks-report-macro", "detailssummary"),
        *("content-report-table", "create-from-template", "favpages", "network", "global-reports", "create-space-button", "space-details"),
        *("spaces", "profile-picture", "userlister", "index", "search", "content-by-user", "jirachart", "roadmap"),
    )
)
SILENT_MACROS = frozenset(("anchor",))
KNOWN_MACROS = frozenset((*CODE_MACROS, *PANEL_MACROS, *EXPAND_MACROS, *PLAIN_MACROS, *SHOWING_MACROS, *DYNAMIC_MACROS, *SILENT_MACROS))
# languages of plain bodies that the macro's name tells
BODY_LANGUAGES = {"html": "html", "markdown": "markdown", "plantuml": "plantuml", "mermaid": "mermaid", "sql": "sql", "latex": "latex"}
NO_LANGUAGE = frozenset(("none", "text", "plain", "plaintext"))

EMOTICONS = {
    "smile": "🙂",
    "sad": "🙁",
    "cheeky": "😛",
    "laugh": "😀",
    "wink": "😉",
    "thumbs-up": "👍",
    "thumbs-down": "👎",
    "information": "ℹ",
    "tick": "✔",
    "cross": "✘",
    "warning": "⚠",
    "plus": "➕",
    "minus": "➖",
    "question": "❓",
    "light-on": "💡",
    "heart": "❤",
    "broken-heart": "💔",
    "yellow-star": "⭐",
}

_STORAGE = re.compile(
    r"<(?:ac:(?:structured-macro|macro|layout|image|link|task-list|emoticon|placeholder|adf-extension|inline-comment-marker)"
    r"|ri:(?:page|attachment|url|user))(?=[\s/>])"
)
_NAMESPACE = re.compile(r"""xmlns:ac\s*=\s*["']([^"']*)["']""")


def is_storage_format(text: str) -> bool:
    """Whether a page has elements of storage format as markup of its own: not inside CDATA, nor under another vocabulary's `ac:`."""
    if "<ac:" not in text and "<ri:" not in text:
        return False
    found = _STORAGE.search(text)
    if found is None or text.rfind("<![CDATA[", 0, found.start()) > text.rfind("]]>", 0, found.start()):
        return False
    named = _NAMESPACE.search(text, 0, 10_000)
    return named is None or named[1] == "" or "atlassian" in named[1].lower() or "confluence" in named[1].lower()


def emoticon(values: dict[str, str]) -> str:
    name = values.get("ac:name", "")
    return values.get("ac:emoji-fallback") or EMOTICONS.get(name) or values.get("ac:emoji-shortname") or (f":{name}:" if name else "")


def reference(name: str, values: dict[str, str]) -> tuple[str, str]:
    """(href, text) of a resource identifier; empty texts where it names nothing."""
    space = values.get("ri:space-key", "")
    title = values.get("ri:content-title", "")
    if name == "ri:page":
        return f"{space}:{title}" if space else title, title or space
    if name == "ri:blog-post":
        day = values.get("ri:posting-day", "").strip("/")
        path = f"/{day}/{title}" if day else title
        return f"{space}:{path}" if space else path, title
    if name == "ri:attachment":
        return values.get("ri:filename", ""), values.get("ri:filename", "")
    if name == "ri:url":
        return values.get("ri:value", ""), values.get("ri:value", "")
    if name == "ri:user":
        user = values.get("ri:username") or values.get("ri:account-id") or values.get("ri:userkey") or ""
        return (f"~{user}", f"@{user}") if user else ("", "")
    if name == "ri:space":
        return (f"{space}:", space) if space else ("", "")
    if name == "ri:content-entity":
        content = values.get("ri:content-id", "")
        return (f"${content}", content) if content else ("", "")
    if name == "ri:shortcut":
        parameter = values.get("ri:parameter", "")
        return f"{parameter}@{values.get('ri:key', '')}", parameter
    return "", ""
