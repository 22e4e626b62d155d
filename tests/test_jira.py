"""Tickets: v3 with ADF, v2 with wiki markup, pages and lines of them; a change is told from a requirement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from document_files import parse_bytes
from shared_cases import CASES, case

from raydex.ir.parsed import ParsedFile

TRUTH = CASES.parent / "corpora" / "jira"
ADF = {
    "type": "doc",
    "version": 1,
    "content": [
        {"type": "heading", "attrs": {"level": 2}, "content": [{"type": "text", "text": "Goal"}]},
        {
            "type": "paragraph",
            "content": [
                {"type": "text", "text": "Ask "},
                {"type": "mention", "attrs": {"id": "1", "text": "@ops"}},
                {"type": "text", "text": " by "},
                {"type": "date", "attrs": {"timestamp": "1772323200000"}},
                {"type": "hardBreak"},
                {"type": "status", "attrs": {"text": "OPEN"}},
                {"type": "text", "text": " site", "marks": [{"type": "link", "attrs": {"href": "https://example.org/?a=1&b=2"}}]},
            ],
        },
        {"type": "codeBlock", "attrs": {"language": "python"}, "content": [{"type": "text", "text": "    x < y"}]},
        {
            "type": "panel",
            "attrs": {"panelType": "warning"},
            "content": [{"type": "paragraph", "content": [{"type": "text", "text": "Hot!"}]}],
        },
        {
            "type": "taskList",
            "content": [{"type": "taskItem", "attrs": {"state": "DONE"}, "content": [{"type": "text", "text": "Measure"}]}],
        },
        {"type": "novelty", "content": [{"type": "text", "text": "kept"}]},
    ],
}


def issue(**fields: Any) -> dict[str, Any]:
    return {
        "key": "OPS-7",
        "self": "https://tracker.example/rest/api/3/issue/7",
        "fields": {
            "summary": "Pump stalls",
            "description": ADF,
            "status": {"name": "Open"},
            "reporter": {"displayName": "Ada Example"},
            "comment": {
                "comments": [{"id": "5", "author": {"displayName": "Bo"}, "created": "T1", "updated": "T2", "body": ADF}],
                "total": 3,
            },
            "worklog": {"worklogs": [{"id": "8", "author": {"displayName": "Cy"}, "started": "T3", "timeSpentSeconds": 3600}]},
            **fields,
        },
        "changelog": {
            "histories": [
                {
                    "id": "9",
                    "author": {"displayName": "Ada"},
                    "created": "T4",
                    "items": [{"field": "status", "fromString": "New", "toString": "Open"}],
                }
            ]
        },
        "remotelinks": [{"id": 3, "relationship": "blocks", "object": {"title": "Wiki", "url": "https://wiki.example/x"}}],
    }


def read(value: Any, media_type: str = "application/json") -> ParsedFile:
    return parse_bytes(json.dumps(value) if not isinstance(value, str) else value, media_type, "OPS-7.json")


def by_field(parsed: ParsedFile, name: str) -> list[str]:
    return [block.text for block in parsed.blocks if block.locator.field == name and block.kind != "heading"]


def test_sections_tell_a_change_from_a_requirement() -> None:
    parsed = read(issue())
    assert parsed.document is not None and (parsed.document.title, parsed.document.parser) == ("OPS-7 Pump stalls", "jira")
    assert [block.text for block in parsed.blocks if block.kind == "heading" and block.metadata["level"] == 1] == [
        "Summary",
        "Metadata",
        "Description",
        "Comments",
        "Changelog",
        "Worklogs",
        "Remote Links",
    ]
    assert by_field(parsed, "changelog") == ["T4 Ada: status changed from New to Open"]
    change = next(block for block in parsed.blocks if block.locator.field == "changelog" and block.kind == "paragraph")
    assert {key: change.metadata[key] for key in ("field", "from", "to", "changed_at")} == {
        "field": "status",
        "from": "New",
        "to": "Open",
        "changed_at": "T4",
    }
    assert change.locator.pointer == "/changelog/histories/0/items/0" and change.section_path == ["Changelog"]
    assert by_field(parsed, "remotelink") == ["blocks: Wiki"]


def test_the_issue_has_its_parts() -> None:
    found = read(issue()).issue
    assert found is not None and (found.key, found.site, found.summary) == ("OPS-7", "tracker.example", "Pump stalls")
    assert [(c.comment_id, c.author, c.created, c.updated) for c in found.comments] == [("5", "Bo", "T1", "T2")]
    assert [(c.author, c.changed_at, c.field, c.from_value, c.to_value) for c in found.changelog] == [
        ("Ada", "T4", "status", "New", "Open")
    ]
    assert [(w.author, w.started, w.seconds) for w in found.worklogs] == [("Cy", "T3", 3600)]
    assert [(link.relation, link.title, link.href) for link in found.remote_links] == [("blocks", "Wiki", "https://wiki.example/x")]


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"startAt": 0, "total": 77}, "1 of 77 issues are in the export"),
        ({"isLast": False}, "1 issues are in the export, and the server has more"),
        ({"nextPageToken": "CAEa"}, "1 issues are in the export, and the server has more"),
        ({"isLast": True, "total": 1, "nextPageToken": None}, ""),
    ],
)
def test_a_search_page_that_is_not_the_last_is_said(about: dict[str, Any], said: str) -> None:
    parsed = read({**about, "issues": [issue()]})
    assert [event.message for event in parsed.events if event.message] == ([said] if said else [])
    assert parsed.document is not None and parsed.document.warnings == (["incomplete_list"] if said else [])


@pytest.mark.parametrize(
    ("about", "seen_by"),
    [
        ({"visibility": {"type": "role", "value": "Administrators", "identifier": "10002"}}, "role Administrators"),
        ({"visibility": {"type": "group", "identifier": "g-1"}}, "group g-1"),
        ({"jsdPublic": False}, "the service team"),
        ({"jsdPublic": True}, ""),
    ],
)
def test_who_alone_may_see_a_comment_is_said(about: dict[str, Any], seen_by: str) -> None:
    secret = {"id": "6", "author": {"displayName": "Bo"}, "created": "T1", "body": "Hidden.\n\nToo.", **about}
    plain = {"id": "7", "author": {"displayName": "Bo"}, "created": "T1", "body": "Open."}
    log = {"id": "8", "started": "T3", "timeSpentSeconds": 60, "comment": "Logged.", **about}
    parsed = read(issue(comment={"comments": [secret, plain]}, worklog={"worklogs": [log]}))
    mark = [f"Restricted to {seen_by}"] if seen_by else []
    assert by_field(parsed, "comment") == [*mark, "Hidden.", "Too.", "Open."]
    restricted = {block.text: block.metadata.get("restricted_to", "") for block in parsed.blocks if block.kind != "heading"}
    assert [restricted[text] for text in (*mark, "Hidden.", "Too.", "Logged.")] == [seen_by] * (3 + len(mark)) and not restricted["Open."]
    assert {block.locator.comment for block in parsed.blocks if block.text in (*mark, "Hidden.") and block.locator.field == "comment"} == {
        "6"
    }
    assert parsed.issue is not None
    assert [comment.text for comment in parsed.issue.comments] == ["\n".join([*mark, "Hidden.", "Too."]), "Open."]
    assert by_field(parsed, "worklog")[:1] == (mark or ["T3  logged 60 s"])


def test_a_list_that_was_cut_to_a_page_is_said() -> None:
    parsed = read(issue())
    assert parsed.document is not None and "incomplete_list" in parsed.document.warnings
    assert "1 of 3 comments are in the export" in [event.message for event in parsed.events]


def test_adf_nodes_keep_what_a_reader_sees() -> None:
    parsed = read(issue())
    described = [block for block in parsed.blocks if block.locator.field == "description"]
    texts = [block.text for block in described]
    assert "Ask @ops by 2026-03-01\nOPEN site" in texts
    linked = next(block for block in described if block.links)
    assert [link.href for link in linked.links] == ["https://example.org/?a=1&b=2"]
    code = next(block for block in described if block.kind == "code")
    assert (code.text, code.metadata["language"]) == ("    x < y", "python")
    assert {"Hot!", "kept"} <= set(texts) and any("Measure" in text for text in texts)
    assert any("'novelty'" in event.message for event in parsed.events)


def test_depth_is_bounded() -> None:
    inner: dict[str, Any] = {"type": "paragraph", "content": [{"type": "text", "text": "x"}]}
    for _ in range(400):
        inner = {"type": "panel", "content": [inner]}
    assert read(issue(description={"type": "doc", "content": [inner]})).rejects[0].reject_class == "too_deep"


def test_wiki_markup_of_older_exports() -> None:
    text = "h2. Goal\r\nUse *bold* and {{code}} at [Wiki|https://wiki.example/x?a=1].\r\n* one\r\n** two\r\n||A||B||\r\n|1|2|\r\n"
    text += "{code:python}\r\nx = 1\r\n{code}\r\n"
    described = [block for block in read(issue(description=text)).blocks if block.locator.field == "description"]
    assert [(block.kind, block.text) for block in described if block.text != "Description"] == [
        ("heading", "Goal"),
        ("paragraph", "Use bold and code at Wiki."),
        ("list_item", "one"),
        ("list_item", "two"),
        ("table", "A | B\n1 | 2"),
        ("code", "x = 1"),
    ]


@pytest.mark.parametrize("kind", ["page", "list", "lines"])
def test_exports_hold_a_member_a_ticket(kind: str) -> None:
    tickets = [{**issue(), "key": f"OPS-{n}"} for n in (1, 2, 3)]
    if kind == "page":
        parsed = read({"startAt": 0, "total": 9, "issues": tickets})
    elif kind == "list":
        parsed = read(tickets)
    else:
        parsed = read("\n".join(map(json.dumps, tickets)), "application/jsonl")
    members = list(parsed.members)
    assert [member.name for member in members] == ["OPS-1.json", "OPS-2.json", "OPS-3.json"]
    assert len({member.step for member in members}) == 3
    assert [json.loads(member.data)["key"] for member in members] == ["OPS-1", "OPS-2", "OPS-3"]
    assert parsed.document is not None and (parsed.document.warnings == ["incomplete_list"]) == (kind == "page")


@pytest.mark.parametrize("kind", ["page", "lines"])
def test_what_is_no_ticket_in_an_export_costs_no_ticket(kind: str) -> None:
    odd = {"key": "OPS-2", "id": "9"}
    tickets = [odd, {**issue(), "key": "OPS-1"}, {**issue(), "key": "OPS-3"}, {**issue(), "key": "OPS-4"}]
    if kind == "page":
        parsed = read({"issues": tickets})
        expected = ["0.json", "OPS-1.json", "OPS-3.json", "OPS-4.json"]
        said = "1 of 4 elements are no issues: /issues/0"
    else:
        parsed = read("\n".join([*map(json.dumps, tickets), json.dumps(tickets[1])[:300]]), "application/jsonl")
        expected = ["0.json", "OPS-1.json", "OPS-3.json", "OPS-4.json", "4.json"]
        said = "2 of 5 elements are no issues: /0, /4"
    members = list(parsed.members)
    assert [member.name for member in members] == expected
    assert json.loads(members[0].data) == odd and [member.reject_class for member in members[4:]] == ["syntax"][: kind == "lines"]
    assert parsed.document is not None and parsed.document.warnings == ["odd_items"] and parsed.document.metadata["issues"] == 3
    assert said in [event.message for event in parsed.events if event.name == "odd_items"]


def test_data_with_a_ticket_among_it_is_data() -> None:
    parsed = read("\n".join(map(json.dumps, [{**issue(), "key": "OPS-1"}, {"a": 1}, {"b": 2}])), "application/jsonl")
    assert parsed.document is not None and parsed.document.parser == "jsonl" and not parsed.members


def test_json_that_only_looks_like_a_ticket_is_data() -> None:
    parsed = read({"key": "OPS-7", "fields": 3})
    assert parsed.document is not None and parsed.document.parser == "json"


def test_atoms_side_by_side_are_words_apart() -> None:
    atoms = [
        {"type": "mention", "attrs": {"id": "1", "text": "@ops"}},
        {"type": "status", "attrs": {"text": "DONE"}},
        {"type": "date", "attrs": {"timestamp": "1704153600000"}},
        {"type": "inlineCard", "attrs": {"url": "https://x.org"}},
        {"type": "text", "text": ", then."},
    ]
    body = {"type": "doc", "content": [{"type": "paragraph", "content": atoms}]}
    assert by_field(read(issue(description=body)), "description") == ["@ops DONE 2024-01-02 https://x.org, then."]


def test_case_inline_atoms() -> None:
    parsed = parse_bytes(case("b21-adf-inline-atoms/OPS-41.json").read_bytes(), "application/json", "OPS-41.json")
    texts = [block.text for block in parsed.blocks if block.locator.field == "description"]
    shown = "\n".join(texts)
    assert any(
        all(part in text for part in ("Asked @operator-7 to close", "https://example.org/x/OPS-40", "by 2026-03-01", "BLOCKED"))
        for text in texts
    )
    assert "Line one\nline two" in shown and "trace.png" in shown and "panel photo" in shown
    assert all(text in shown for text in ("x < y", "More detail", "Hidden by default.", "Text in an unknown node."))
    code = next(block for block in parsed.blocks if block.kind == "code")
    assert code.metadata["language"] == "python" and any(line.startswith("    ") for line in code.text.split("\n"))
    assert any("OPS-40" in link.href for block in parsed.blocks for link in block.links)


@pytest.mark.skipif(not TRUTH.is_dir(), reason="shared/corpora is not beside this checkout")
@pytest.mark.parametrize("path", sorted((TRUTH / "issues").glob("*.json")) if TRUTH.is_dir() else [], ids=lambda path: path.stem)
def test_real_tickets(path: Path) -> None:
    truth = json.loads((TRUTH / "truth.json").read_text())[path.stem]
    found = parse_bytes(path.read_bytes(), "application/json", path.name).issue
    assert found is not None
    changes = [[c.changed_at, c.author, c.field, c.from_value or None, c.to_value or None] for c in found.changelog]
    assert sorted(map(str, changes)) == sorted(str([a, b, c, d or None, e or None]) for a, b, c, d, e in truth["changes_oldest_first"])
    assert (len(found.comments), len(found.worklogs)) == (len(truth["comments"]), len(truth["worklogs"]))
