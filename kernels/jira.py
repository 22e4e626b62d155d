"""Jira issues (REST v2 with wiki markup, v3 with ADF) → IssueIR and blocks in a section each: Summary, Metadata, Description, Comments,
Changelog, Worklogs, Remote Links (seed 1).

The invariant: a block says by its locator's `field` which section it is from, so that a change of a field is never taken for a
requirement; comments carry id, author, times and who alone may see them, changes field, from, to and time, worklogs author and start.
Nothing of a page that the tracker cut short goes unsaid: a list of fewer items than its `total` is a warning.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import orjson

from raydex.ir.document import Link
from raydex.ir.errors import InputError
from raydex.ir.issue import Issue, IssueChange, IssueComment, IssueLink, IssueWorklog
from raydex.ir.parsed import ParsedFile
from raydex.kernels.adf import AdfWalk
from raydex.kernels.decode import decode
from raydex.kernels.drafts import Draft, finish
from raydex.kernels.inner_sections import end_sections
from raydex.kernels.jira_wiki import WikiWalk
from raydex.kernels.request import ParseRequest
from raydex.kernels.tables import table_text

PARSER_VERSION = "3"
KEY = re.compile(r"[A-Z][A-Z0-9_]*-\d+\Z")
Json = dict[str, Any]
# fields of Metadata, in order: (name in the export, label)
_NAMED = (
    ("issuetype", "type"),
    ("status", "status"),
    ("priority", "priority"),
    ("resolution", "resolution"),
    ("project", "project"),
    ("reporter", "reporter"),
    ("creator", "creator"),
    ("assignee", "assignee"),
    ("created", "created"),
    ("updated", "updated"),
    ("duedate", "due"),
    ("resolutiondate", "resolved"),
    ("labels", "labels"),
    ("components", "components"),
    ("fixVersions", "fix versions"),
    ("versions", "versions"),
    ("parent", "parent"),
    ("subtasks", "subtasks"),
    ("issuelinks", "links"),
    ("attachment", "attachments"),
)


def is_issue(value: Any) -> bool:
    """Whether a JSON value is an issue of Jira's REST interface."""
    return isinstance(value, dict) and isinstance(value.get("fields"), dict) and bool(KEY.match(str(value.get("key", ""))))


def parse_issue(request: ParseRequest) -> ParsedFile:
    """One issue. Raises InputError: syntax, too_deep, too_many_blocks."""
    decoded = decode(request.data)
    try:
        value = orjson.loads(decoded.text)
    except orjson.JSONDecodeError as error:
        raise InputError(f"the ticket is no JSON: {error.msg}", reject_class="syntax") from error
    return issue_of(value, request)


def issue_of(value: Json, request: ParseRequest, pointer: str = "") -> ParsedFile:
    """`value` at `pointer` of the file."""
    walk = IssueWalk(value, request, pointer)
    walk.read()
    key = walk.issue.key
    end_sections(walk.drafts, walk.adf.boxes)
    parsed = finish(
        request,
        None,
        walk.drafts,
        parser="jira",
        parser_version=PARSER_VERSION,
        title=f"{key} {walk.issue.summary}".strip(),
        warnings=tuple(walk.warnings),
        metadata={"key": key, "site": walk.issue.site},
    )
    parsed.issue = walk.issue
    for name, count in walk.adf.unknown.items():
        parsed.add_event("parse", "warning", "unknown_node", f"{count} nodes of the unknown type {name[:80]!r} were read as text")
    for message in walk.messages:
        parsed.add_event("parse", "warning", "incomplete_list", message)
    return parsed


class IssueWalk:
    def __init__(self, value: Json, request: ParseRequest, pointer: str) -> None:
        self.value = value
        self.fields: Json = value.get("fields") or {}
        self.drafts: list[Draft] = []
        self.warnings: dict[str, None] = {}
        self.messages: list[str] = []
        self.adf = AdfWalk(self.drafts, request.limits.depth, level=1)
        self.wiki = WikiWalk(self.drafts, level=1)
        self._pointer = pointer
        address = urlsplit(str(value.get("self") or ""))
        self.issue = Issue(request.record_id, address.netloc, str(value.get("key") or ""), str(self.fields.get("summary") or ""))

    def read(self) -> None:
        issue, fields = self.issue, self.fields
        self._section("Summary", "summary")
        self._add("paragraph", issue.summary, "summary", "/fields/summary")
        self._metadata()
        for name in ("description", "environment"):
            if fields.get(name):
                self._section(name.capitalize(), name)
                text = self._body(fields[name], f"/fields/{name}", name)
                if name == "description":
                    issue.description = text
        self._comments()
        self._changelog()
        self._worklogs()
        self._links()
        if self.adf.unknown:
            self.warnings["unknown_node"] = None

    def _section(self, title: str, name: str) -> None:
        self.drafts.append(Draft("heading", 0, 0, title, {"level": 1}, place={"field": name}))

    def _add(
        self, kind: str, text: str, name: str, pointer: str, about: Json | None = None, links: list[Link] | None = None, comment: str = ""
    ) -> None:
        if text.strip():
            place = {"field": name, "pointer": self._pointer + pointer, **({"comment": comment} if comment else {})}
            self.drafts.append(Draft(kind, 0, 0, text, about or {}, links or [], place=place))

    def _body(self, body: Any, pointer: str, name: str, comment: str = "", about: Json | None = None) -> str:
        """Drafts of a rich text; its plain text."""
        first = len(self.drafts)
        place = {"field": name, **({"comment": comment} if comment else {})}
        if isinstance(body, dict):
            self.adf.walk(body, self._pointer + pointer, place, about)
        elif isinstance(body, str):
            self.wiki.walk(body, {**place, "pointer": self._pointer + pointer}, about)
        return "\n".join(
            table_text(draft.rows) if draft.rows is not None else draft.text for draft in self.drafts[first:] if draft.text or draft.rows
        )

    def _metadata(self) -> None:
        found: Json = {}
        links: list[Link] = []
        for name, label in _NAMED:
            shown = self._shown(self.fields.get(name), name, links)
            if shown:
                found[label] = shown
        for name, value in self.fields.items():
            if not name.startswith("customfield_"):
                continue
            if isinstance(value, dict) and value.get("type") == "doc":
                self._section(self._label(name), name)
                self._body(value, f"/fields/{name}", name)
            elif shown := self._shown(value, name, links):
                found[self._label(name)] = shown
        self.issue.metadata = found
        self._section("Metadata", "metadata")
        lines = [f"{label}: {', '.join(shown) if isinstance(shown, list) else shown}" for label, shown in found.items()]
        self._add("paragraph", "\n".join(lines), "metadata", "/fields", links=links)

    def _label(self, name: str) -> str:
        names = self.value.get("names")
        return str(names[name]) if isinstance(names, dict) and names.get(name) else name

    def _shown(self, value: Any, name: str, links: list[Link]) -> Any:
        """A field as a reader sees it: a string, a list of strings, or None for nothing."""
        if value is None or value == "" or value == [] or isinstance(value, bool):
            return None
        if isinstance(value, (int, float, str)):
            return str(value)
        if isinstance(value, list):
            shown = [text for item in value if isinstance(text := self._shown(item, name, links), str)]
            return shown or None
        if isinstance(value, dict):
            if name == "issuelinks":
                kind = value.get("type") or {}
                for way in ("outward", "inward"):
                    other = value.get(f"{way}Issue")
                    if isinstance(other, dict) and other.get("key"):
                        links.append(Link(str(other["key"]), str(kind.get(way) or "")))
                        return f"{kind.get(way) or 'relates to'} {other['key']}"
                return None
            if name == "attachment" and value.get("content"):
                links.append(Link(str(value["content"]), str(value.get("filename") or "")))
            if name in ("parent", "subtasks") and value.get("key"):
                links.append(Link(str(value["key"]), ""))
            for field in ("key", "filename") if name in ("parent", "subtasks", "attachment") else ("displayName", "name", "value", "key"):
                if isinstance(value.get(field), (str, int)):
                    return str(value[field])
        return None

    def _comments(self) -> None:
        comments = self._page(self.fields.get("comment"), "comments")
        if comments:
            self._section("Comments", "comment")
        for at, item in enumerate(comments):
            identifier, author = str(item.get("id") or at), _person(item.get("author"))
            created, updated = str(item.get("created") or ""), str(item.get("updated") or "")
            about = {"comment_id": identifier, "author": author, "created": created, "updated": updated}
            pointer = f"/fields/comment/comments/{at}"
            mark = self._restriction(item, "comment", pointer, about, identifier)
            text = mark + self._body(item.get("body"), f"{pointer}/body", "comment", identifier, about)
            self.issue.comments.append(IssueComment(identifier, author, created, updated, text))

    def _restriction(self, item: Json, name: str, pointer: str, about: Json, comment: str = "") -> str:
        """Says above a comment or a worklog, and in what its blocks have in common, that not everybody who sees the issue may see it."""
        seen_by = _restricted_to(item)
        if not seen_by:
            return ""
        about["restricted_to"] = seen_by
        mark = f"Restricted to {seen_by}"
        self._add("paragraph", mark, name, pointer, about, comment=comment)
        return f"{mark}\n"

    def _changelog(self) -> None:
        histories = self._page(self.value.get("changelog"), "histories", "values")
        changes = [
            (h, at, item, k) for at, h in enumerate(histories) for k, item in enumerate(h.get("items") or []) if isinstance(item, dict)
        ]
        if not changes:
            return
        changes.sort(key=lambda change: str(change[0].get("created") or ""))
        self._section("Changelog", "changelog")
        for history, at, item, k in changes:
            author, when = _person(history.get("author")), str(history.get("created") or "")
            field = str(item.get("field") or item.get("fieldId") or "")
            before, after = _string(item, "fromString", "from"), _string(item, "toString", "to")
            identifier = f"{history.get('id') or at}.{k}"
            self.issue.changelog.append(IssueChange(identifier, author, when, field, before, after))
            about = {"change_id": identifier, "author": author, "changed_at": when, "field": field, "from": before, "to": after}
            text = f"{when} {author}: {field} changed from {before or '(empty)'} to {after or '(empty)'}"
            self._add("paragraph", text, "changelog", f"/changelog/histories/{at}/items/{k}", about)

    def _worklogs(self) -> None:
        worklogs = self._page(self.fields.get("worklog"), "worklogs")
        if worklogs:
            self._section("Worklogs", "worklog")
        for at, item in enumerate(worklogs):
            identifier, author, started = str(item.get("id") or at), _person(item.get("author")), str(item.get("started") or "")
            seconds = item.get("timeSpentSeconds")
            seconds = seconds if isinstance(seconds, int) else 0
            about = {"worklog_id": identifier, "author": author, "started": started, "seconds": seconds}
            pointer = f"/fields/worklog/worklogs/{at}"
            mark = self._restriction(item, "worklog", pointer, about)
            self._add("paragraph", f"{started} {author} logged {item.get('timeSpent') or f'{seconds} s'}", "worklog", pointer, about)
            text = mark + self._body(item.get("comment"), f"{pointer}/comment", "worklog", "", about)
            self.issue.worklogs.append(IssueWorklog(identifier, author, started, seconds, text))

    def _links(self) -> None:
        found = self.value.get("remotelinks") or self.value.get("remoteLinks") or self.fields.get("remotelinks") or []
        items = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
        if items:
            self._section("Remote Links", "remotelink")
        for at, item in enumerate(items):
            target = item.get("object") if isinstance(item.get("object"), dict) else {}
            title, href = str((target or {}).get("title") or ""), str((target or {}).get("url") or "")
            relation = str(item.get("relationship") or "")
            identifier = str(item.get("id") or at)
            self.issue.remote_links.append(IssueLink(identifier, relation, title, href))
            text = f"{relation}: {title or href}" if relation else title or href
            self._add("paragraph", text, "remotelink", f"/remotelinks/{at}", {"link_id": identifier}, [Link(href, title)])

    def _page(self, page: Any, *names: str) -> list[Json]:
        """The items of a list that the tracker may have cut to a page."""
        if isinstance(page, list):
            return [item for item in page if isinstance(item, dict)]
        if not isinstance(page, dict):
            return []
        items: list[Any] = next((page[name] for name in names if isinstance(page.get(name), list)), [])
        message = list_missing(page, names[0], len(items))
        if message:
            self.warnings["incomplete_list"] = None
            self.messages.append(message)
        return [item for item in items if isinstance(item, dict)]


def list_missing(page: Json, what: str, count: int) -> str:
    """What to say where the server has more than the `count` items of a page; empty where that is all, as far as the page tells."""
    total = page.get("total", page.get("totalSize"))
    if isinstance(total, int) and total > count:
        return f"{count} of {total} {what} are in the export"
    links = page.get("_links")
    if (
        page.get("isLast") is False
        or any(isinstance(page.get(name), str) and page[name] for name in ("nextPageToken", "nextPage"))
        or (isinstance(links, dict) and links.get("next"))
    ):
        return f"{count} {what} are in the export, and the server has more"
    return ""


def _restricted_to(item: Json) -> str:
    """Who alone may see an item: a role or a group, or the team of a service desk."""
    seen_by = item.get("visibility")
    if isinstance(seen_by, dict) and (name := _string(seen_by, "value", "identifier")):
        return f"{_string(seen_by, 'type') or 'group'} {name}"
    return "the service team" if item.get("jsdPublic") is False else ""


def _person(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("displayName") or value.get("name") or value.get("emailAddress") or value.get("accountId") or "")
    return str(value or "")


def _string(item: Json, *names: str) -> str:
    for name in names:
        if item.get(name) is not None:
            return str(item[name])
    return ""
