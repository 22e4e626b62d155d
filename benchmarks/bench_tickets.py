"""Jira issues with ADF → IssueIR and blocks: issues/s of ours beside the bare JSON parser, in one process on one core.

    python benchmarks/bench_tickets.py [FOLDER] [--issues N] [--rounds N]

Measured over generated issues of about 10 kB each, as a tracker sends them: a description of headings, paragraphs, lists, a table, a panel
and code, comments, worklogs, remote links and a changelog; and over the issues (*.json) below FOLDER, reported apart. The contestants take
turns in many short rounds, as CPU time; the number to reach is a rate of a whole core, and whatever else a machine does can only lower it,
so that the best round counts (the median is printed too). Nothing that we found reads ADF and the other sections of an issue into one
record, so that the peer is `orjson.loads` alone: what no reader can go below.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from verdict import verdict

from raydex.ir.ids import content_hash
from raydex.kernels.parse import parse
from raydex.kernels.request import ParseRequest

REACH = 1_500
WORDS = [
    "the",
    "valve",
    "releases",
    "pressure",
    "under",
    "load",
    "while",
    "engineers",
    "note",
    "what",
    "was",
    "measured",
    "where",
    "and",
    "by",
    "which",
    "instrument",
    "before",
    "a",
    "pump",
    "stalls",
]
Json = dict[str, Any]


def sentence(seed: int, count: int) -> str:
    return " ".join(WORDS[(seed * 7 + at * (1 + seed % 5)) % len(WORDS)] for at in range(count)).capitalize() + "."


def text(value: str, *marks: Json) -> Json:
    return {"type": "text", "text": value, **({"marks": list(marks)} if marks else {})}


def node(kind: str, *content: Json, **attrs: Any) -> Json:
    return {"type": kind, **({"attrs": attrs} if attrs else {}), **({"content": list(content)} if content else {})}


def paragraph(seed: int, count: int) -> Json:
    link = {"type": "link", "attrs": {"href": f"https://wiki.example/page/{seed}"}}
    parts = [text(sentence(seed, count)), text(" bold ", {"type": "strong"}), text("see the page", link)]
    if seed % 3 == 0:
        parts += [
            text(" "),
            node("mention", id=f"u{seed}", text=f"@person{seed}"),
            node("hardBreak"),
            node("emoji", shortName=":ok:", text="ok"),
        ]
    return node("paragraph", *parts)


def items(seed: int, count: int) -> list[Json]:
    return [node("listItem", paragraph(seed + at, 9)) for at in range(count)]


def description(seed: int) -> Json:
    head = node("tableRow", *(node("tableHeader", node("paragraph", text(f"column {at}"))) for at in range(4)))
    rows = [node("tableRow", *(node("tableCell", node("paragraph", text(f"{seed}.{row}.{at}"))) for at in range(4))) for row in range(3)]
    return {
        **node(
            "doc",
            node("heading", text("Goal"), level=2),
            paragraph(seed, 24),
            node("bulletList", *items(seed, 4)),
            node("heading", text("Steps"), level=2),
            node("orderedList", *items(seed + 9, 4)),
            node("panel", paragraph(seed + 3, 12), panelType="warning"),
            node("codeBlock", text("def f(x):\n    return x < 4\n" * 4), language="python"),
            node("table", head, *rows),
        ),
        "version": 1,
    }


def person(at: int) -> Json:
    return {"accountId": f"a{at}", "displayName": f"Person {at}", "emailAddress": f"p{at}@example.com", "active": True}


def make_issue(seed: int) -> bytes:
    stamp = f"2026-03-{1 + seed % 28:02}T10:00:00.000+0000"
    comments = [
        {"id": f"{seed}{at}", "author": person(at), "created": stamp, "updated": stamp, "body": node("doc", paragraph(seed + at, 24))}
        for at in range(3)
    ]
    histories = [
        {
            "id": f"{at}",
            "author": person(at),
            "created": f"2026-03-02T1{at}:00:00.000+0000",
            "items": [{"field": "status", "fieldtype": "jira", "from": "1", "fromString": "Open", "to": "3", "toString": "Doing"}],
        }
        for at in range(5)
    ]
    fields = {
        "summary": sentence(seed, 8),
        "issuetype": {"name": "Bug"},
        "status": {"name": "Open"},
        "priority": {"name": "High"},
        "project": {"key": "OPS", "name": "Operations"},
        "reporter": person(1),
        "assignee": person(2),
        "created": stamp,
        "updated": stamp,
        "labels": ["pump", "valve"],
        "components": [{"name": "hydraulics"}],
        "issuelinks": [{"type": {"outward": "blocks"}, "outwardIssue": {"key": f"OPS-{seed + 1}"}}],
        "customfield_10010": 5,
        "customfield_10011": {"value": "north"},
        "description": description(seed),
        "comment": {"comments": comments, "total": 3},
        "worklog": {"worklogs": [{"id": "7", "author": person(3), "started": stamp, "timeSpent": "1h", "timeSpentSeconds": 3600}]},
    }
    links = [{"id": 1, "relationship": "mentioned in", "object": {"title": "Page", "url": "https://wiki.example/1"}}]
    issue = {
        "id": str(seed),
        "key": f"OPS-{seed}",
        "self": f"https://tracker.example/rest/api/3/issue/{seed}",
        "fields": fields,
        "changelog": {"histories": histories, "total": 5},
        "remotelinks": links,
    }
    return orjson.dumps(issue)


def run_ours(name: str, data: bytes) -> None:
    parsed = parse(ParseRequest("rec_bench", content_hash(data), name, "application/json", data))
    assert parsed.issue is not None, parsed.rejects


def run_bare(name: str, data: bytes) -> None:
    orjson.loads(data)


def rate(files: dict[str, bytes], rounds: int, run: dict[str, Callable[[str, bytes], None]]) -> dict[str, float]:
    """Issues/s of each contestant in its best round."""
    times: dict[str, list[float]] = {name: [] for name in run}
    for turn in range(-1, rounds):
        for name, work in run.items():
            start = time.process_time()
            for path, data in files.items():
                work(path, data)
            if turn >= 0:
                times[name].append(time.process_time() - start)
    middle = ", ".join(f"{name} {len(files) / statistics.median(values):,.0f}/s" for name, values in times.items())
    print(f"median of {rounds} rounds: {middle}")
    return {name: len(files) / min(values) for name, values in times.items()}


def say(label: str, files: dict[str, bytes], rates: dict[str, float]) -> None:
    size = sum(map(len, files.values())) / len(files)
    print(
        f"{label:<12}{len(files):>6} issues of {size / 1e3:5.1f} kB"
        + "".join(f"{name + ' /s':>12}{value:>10,.0f}" for name, value in rates.items())
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--issues", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    run = {"ours": run_ours, "bare json": run_bare}
    files = {f"OPS-{seed}.json": make_issue(seed) for seed in range(options.issues)}
    rates = rate(files, options.rounds, run)
    say("generated", files, rates)
    if options.folder:
        found = {path.name: path.read_bytes() for path in sorted(options.folder.rglob("*.json"))}
        if found:
            say("of a folder", found, rate(found, options.rounds, run))
    verdict("tickets: issues of about 10 kB/s per core", rates["ours"], REACH)
    verdict("tickets: issues/s ÷ bare JSON parser", rates["ours"] / rates["bare json"], None)


if __name__ == "__main__":
    main()
