"""IssueIR (seed 1): summary, metadata, description, comments, changelog, worklogs and remote links, each in a section of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class IssueComment:
    comment_id: str
    author: str
    created: str
    updated: str
    text: str


@dataclass(slots=True)
class IssueChange:
    change_id: str
    author: str
    changed_at: str
    field: str
    from_value: str
    to_value: str


@dataclass(slots=True)
class IssueWorklog:
    worklog_id: str
    author: str
    started: str
    seconds: int
    text: str


@dataclass(slots=True)
class IssueLink:
    link_id: str
    relation: str
    title: str
    href: str


@dataclass(slots=True)
class Issue:
    """One ticket. Times are ISO 8601 as the tracker gives them."""

    record_id: str
    site: str
    key: str
    summary: str
    description: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    comments: list[IssueComment] = field(default_factory=list)
    changelog: list[IssueChange] = field(default_factory=list)
    worklogs: list[IssueWorklog] = field(default_factory=list)
    remote_links: list[IssueLink] = field(default_factory=list)
