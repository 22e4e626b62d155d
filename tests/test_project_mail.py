"""Mails, tickets and containers in the projection: persons, who sent what to whom, what answers what, what lies in what."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from test_project import Seen

from raydex.ir.ids import content_hash, person_id, ticket_id
from raydex.ir.locator import Locator
from raydex.jobs.project import project
from raydex.jobs.project_mail import read_links
from raydex.kernels.excerpt import Excerpts
from tests.project_lake import STAMP, TestLake

FIRST = b"From: Boss <Boss@X.org>\nTo: Ann <ann@x.org>, Ann <other@x.org>\nSubject: Start\nMessage-ID: <1@x>\n\nGo."
ANSWER = b"From: ann@X.org\nTo: boss@x.org\nCc: Ann B <ann@x.org>\nSubject: Re: Start\nMessage-ID: <2@x>\nIn-Reply-To: <1@x>\n\nYes."
LATE = b"From: nobody\nTo: boss@x.org\nSubject: Re: Re: Start\nReferences: <1@x> <2@x>\n\nLate."
LOST = b"From: boss@x.org\nSubject: Re: gone\nIn-Reply-To: <gone@x>\n\nWhat?"


def issue(key: str, site: str = "https://jira.example.org/rest/api/2/issue/1") -> dict[str, Any]:
    return {"key": key, "self": site, "fields": {"summary": f"About {key}", "description": "The pump stops."}}


def with_attachment() -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "boss@x.org", "ann@x.org", "Numbers"
    mail.set_content("See the file.")
    mail.add_attachment("# Plan\n\nText", filename="plan.md", subtype="markdown")
    mail.add_attachment("def run():\n    pass\n", filename="run.py", subtype="x-python")
    return mail.as_bytes()


def archive() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr("docs/readme.md", "# Read me\n\nText")
        made.writestr("mail/one.eml", LOST)
    return out.getvalue()


FILES = {
    "mail/1.eml": FIRST,
    "mail/2.eml": ANSWER,
    "mail/3.eml": LATE,
    "mail/4.eml": with_attachment(),
    "pack.zip": archive(),
    "export.json": json.dumps({"issues": [issue("OPS-1"), issue("OPS-2")]}).encode(),
    "OPS-1.json": json.dumps(issue("OPS-1")).encode(),
    "loose.json": json.dumps(issue("OPS-9", site="")).encode(),
}


def mail_lake() -> TestLake:
    lake = TestLake()
    for path, data in FILES.items():
        lake.add_container(path, data)
    lake.add_container("copy/1.eml", FIRST, source="archive")
    lake.add_container("copy/2.eml", ANSWER, source="archive")
    return lake


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from raydex.cluster.spark import open_spark

    with open_spark(tmp_path_factory.mktemp("spark"), cores=2, memory="1g") as session:
        yield session


@pytest.fixture(scope="module")
def post(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("mails")
    return Seen(project(spark, mail_lake().write(folder / "in"), STAMP, folder / "out"))


def pairs(seen: Seen, relation: str) -> set[tuple[str, str, str]]:
    """(source, target, confidence); a mail by its source and path."""

    def name(node_id: str) -> str:
        node = seen.nodes[node_id]
        return node["qualified_name"] if node["kind"] == "person" else node["source_keys"][0]

    return {(name(e["source"]), name(e["target"]), e["confidence"]) for e in seen.edges if e["relation"] == relation}


def test_links_of_many_mails_are_rows() -> None:
    import pyarrow as pa

    lake = mail_lake()
    heads = pa.concat_tables(lake.tables["documents"]).filter(pa.compute.field("parser") == "mail").select(["record_id", "metadata"])
    rows = [row for batch in read_links(heads.to_batches()) for row in batch.to_pylist()]
    assert {row["node_id"] for row in rows if row["key"] == "ann@x.org"} == {person_id("ann@x.org")}
    assert [row["key"] for row in rows if row["relation"] == "REPLY_TO"] == ["1@x", "2@x", "gone@x", "1@x"]
    assert {row["confidence"] for row in rows if row["key"] == "2@x" and row["relation"] == "REPLY_TO"} == {"INFERRED"}


@pytest.mark.slow
def test_who_wrote_to_whom(post: Seen) -> None:
    assert not post.outputs.problem_counts
    assert {(n["qualified_name"], n["name"]) for n in post.nodes.values() if n["kind"] == "person"} == {
        ("ann@x.org", "Ann"),
        ("boss@x.org", "Boss"),
        ("other@x.org", "Ann"),
    }
    ann = post.nodes[person_id("ann@x.org")]
    assert ann["source_keys"] == ["archive", "shop"] and json.loads(ann["properties"]) == {"names": ["Ann", "Ann B"]}
    assert ann["record_id"] is None and ann["path"] == ""
    sent = {(source, target) for source, target, _ in pairs(post, "SENT")}
    assert sent == {
        ("boss@x.org", "shop:mail/1.eml"),
        ("ann@x.org", "shop:mail/2.eml"),
        ("boss@x.org", "shop:mail/4.eml"),
        ("boss@x.org", "shop:pack.zip!/mail/one.eml"),
        ("boss@x.org", "archive:copy/1.eml"),
        ("ann@x.org", "archive:copy/2.eml"),
    }
    assert ("ann@x.org", "shop:mail/1.eml", "EXTRACTED") in pairs(post, "RECEIVED")
    assert ("boss@x.org", "shop:mail/3.eml", "EXTRACTED") in pairs(post, "RECEIVED")
    assert pairs(post, "CC") == {("ann@x.org", "shop:mail/2.eml", "EXTRACTED"), ("ann@x.org", "archive:copy/2.eml", "EXTRACTED")}
    assert {n["kind"] for n in post.nodes.values() if n["path"].endswith(".eml") and "#" not in n["qualified_name"]} == {"email"}


@pytest.mark.slow
def test_a_mail_answers_the_copy_in_its_own_source(post: Seen) -> None:
    assert pairs(post, "REPLY_TO") == {
        ("shop:mail/2.eml", "shop:mail/1.eml", "EXTRACTED"),
        ("archive:copy/2.eml", "archive:copy/1.eml", "EXTRACTED"),
        ("shop:mail/3.eml", "shop:mail/2.eml", "INFERRED"),
    }


@pytest.mark.slow
def test_evidence_of_mails_is_cut_again_from_the_mail(post: Seen) -> None:
    data = {**FILES, "copy/1.eml": FIRST, "copy/2.eml": ANSWER, "pack.zip!/mail/one.eml": LOST}
    checked = 0
    for edge in post.edges:
        for key in edge["evidence_ids"]:
            row = post.evidence[key]
            place = Locator.parse(row["locator"])
            if row["path"].endswith(".eml") and place.field is not None:
                excerpt = Excerpts(data[row["path"]], "message/rfc822").at(place)
                assert excerpt is not None and content_hash(excerpt.encode()) == row["excerpt_hash"]
                if edge["relation"] in ("SENT", "RECEIVED", "CC"):
                    assert post.nodes[edge["source"]]["qualified_name"] in excerpt.lower()
                checked += 1
    assert checked >= 20


@pytest.mark.slow
def test_what_lies_in_a_container(post: Seen) -> None:
    site = "jira.example.org"
    inside = {(post.name(e["source"]), post.name(e["target"])) for e in post.edges if e["relation"] == "CONTAINS"}
    for pair in (
        ("repository shop", "email mail/4.eml:mail/4.eml"),
        ("email mail/4.eml:mail/4.eml", "document mail/4.eml!/plan.md"),
        ("email mail/4.eml:mail/4.eml", "file mail/4.eml!/run.py"),
        ("email mail/4.eml:mail/4.eml", "section mail/4.eml#Numbers"),
        ("document pack.zip", "email pack.zip!/mail/one.eml:pack.zip!/mail/one.eml"),
        ("document mail/4.eml!/plan.md", "section mail/4.eml!/plan.md#Plan"),
    ):
        assert pair in inside, pair
    assert ("repository shop", "document mail/4.eml!/plan.md") not in inside
    first = post.nodes[ticket_id(site, "OPS-1")]
    assert (first["kind"], first["source_keys"]) == ("ticket", ["shop:OPS-1.json", "shop:export.json!/OPS-1.json"])
    holders = {post.nodes[e["source"]]["kind"] for e in post.edges if e["target"] == first["node_id"] and e["relation"] == "CONTAINS"}
    assert holders == {"repository", "document"}, "one ticket: a file of its own, and in an export"
    sections = [e for e in post.edges if e["source"] == first["node_id"] and e["relation"] == "CONTAINS"]
    assert {post.nodes[e["target"]]["path"] for e in sections} == {"OPS-1.json", "export.json!/OPS-1.json"}
    loose = [n for n in post.nodes.values() if n["kind"] == "ticket" and n["path"] == "loose.json"]
    assert len(loose) == 1 and loose[0]["node_id"] == loose[0]["record_id"], "a ticket of an unknown site is its record"


@pytest.mark.slow
def test_mails_do_not_depend_on_order_and_a_scope_is_a_part(spark: Any, post: Seen, tmp_path: Path) -> None:
    lake = mail_lake()
    inputs = lake.write(tmp_path / "in", seed=7, files=3)
    again = project(spark, inputs, STAMP, tmp_path / "out")
    assert again.projection_hash == post.outputs.projection_hash
    scope = {row["record_id"] for row in post.outputs.table("nodes").to_pylist() if row["path"] in ("mail/3.eml", "mail/4.eml!/plan.md")}
    part = Seen(project(spark, inputs, STAMP, tmp_path / "part", scope))
    assert not part.outputs.problem_counts
    whole = {edge["edge_id"]: edge for edge in post.edges}
    assert {whole[edge["edge_id"]]["relation"] for edge in part.edges} == {"REPLY_TO", "RECEIVED", "CONTAINS"}
    assert all(set(edge["evidence_ids"]) <= set(whole[edge["edge_id"]]["evidence_ids"]) for edge in part.edges)
