"""What a page says of itself in its head: language, author, dates, under the names that office documents use for them.

Sources: HTML Standard (`lang`, standard metadata names), Dublin Core, Open Graph's article. The invariant: the first of equal facts counts,
as it is written.
"""

from __future__ import annotations

from raydex.kernels.html_state import BREAK, collapse

# names of meta elements → names in the metadata of a document
_FACTS = {
    "author": "creator",
    "article:author": "creator",
    "dc.creator": "creator",
    "dcterms.creator": "creator",
    "date": "created",
    "article:published_time": "created",
    "dc.date": "created",
    "dcterms.date": "created",
    "dc.date.created": "created",
    "dcterms.created": "created",
    "dcterms.issued": "created",
    "datepublished": "created",
    "article:modified_time": "modified",
    "og:updated_time": "modified",
    "last-modified": "modified",
    "dcterms.modified": "modified",
    "datemodified": "modified",
    "description": "description",
    "keywords": "keywords",
    "content-language": "language",
    "dc.language": "language",
    "dcterms.language": "language",
}
_LONGEST = 2000


def read_meta(values: dict[str, str], facts: dict[str, str]) -> None:
    """A meta element that names one of the facts."""
    for name in ("name", "property", "http-equiv", "itemprop"):
        fact = _FACTS.get(values.get(name, "").strip().lower())
        if fact is not None:
            add_fact(facts, fact, values.get("content", ""))
            return


def read_language(values: dict[str, str], facts: dict[str, str]) -> None:
    """The language that the page's root names: it outweighs a meta element."""
    language = values.get("lang") or values.get("xml:lang") or ""
    if language.strip():
        facts.pop("language", None)
        add_fact(facts, "language", language)


def add_fact(facts: dict[str, str], name: str, value: str) -> None:
    text = collapse(value[:_LONGEST].replace(BREAK, "\ufffd"))
    if text:
        facts.setdefault(name, text)
