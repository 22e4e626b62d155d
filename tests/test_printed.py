"""What `parse --json` and `chunk --json` print keeps the checked-in schema, for every kind of file; it refuses what is not printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from raydex.configs.settings import load_settings
from raydex.ir.tables import TABLES
from raydex.jobs.one_file import chunk_one, parse_one
from tests.corpus import FILES, write_corpus

SCHEMA = json.loads((Path(__file__).parents[1] / "ir" / "schema.json").read_text())


def errors_of(part: str, value: Any) -> list[str]:
    """Of the printed object, as it is read back."""
    validator = Draft202012Validator({**SCHEMA, "anyOf": [{"$ref": f"#/$defs/{part}"}]})
    return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(json.loads(json.dumps(value)))]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_corpus(tmp_path_factory.mktemp("printed"))
    text = "---\ntitle: x\n---\n# H\n\n![alt](a.png) [l](b.md)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx\n```\n"
    (folder / "pages/rich.md").write_text(text)
    return folder


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", [*FILES, "pages/sheet.pdf", "pages/rich.md"])
def test_output_keeps_the_schema(corpus: Path, name: str) -> None:
    parsed = parse_one(corpus / name, load_settings())
    assert errors_of("parse", parsed) == []
    assert errors_of("chunk", chunk_one(corpus / name, load_settings(), None, None)) == []
    assert bool(parsed["document"]) != bool(parsed["rejects"])
    if parsed["rejects"]:
        assert parsed["rejects"][0]["class"] == "unsupported_media_type"


def test_the_schema_refuses_other_names_and_kinds(corpus: Path) -> None:
    parsed = parse_one(corpus / "code/pump/control.py", load_settings())
    assert parsed["code_nodes"] and parsed["code_edges"] and parsed["symbols"]
    renamed = [{**row, "reject_class": "x"} for row in parsed["blocks"]]
    assert errors_of("parse", {**parsed, "blocks": renamed})
    assert errors_of("parse", {**parsed, "symbols": [{**parsed["symbols"][0], "kind": "thing"}]})
    assert errors_of("parse", {**parsed, "code_nodes": {"node_id": []}})
    assert errors_of("parse", {key: value for key, value in parsed.items() if key != "children"})


def test_field_names_are_those_of_the_tables(corpus: Path) -> None:
    chunks = chunk_one(corpus / "pages/index.html", load_settings(), None, None)
    assert chunks["chunks"] and chunks["nodes"] and chunks["edges"]
    hidden = {"fingerprint", "run_id", "epoch", "written_at"}
    for key, table in (("chunks", "chunks"), ("nodes", "chunk_nodes"), ("edges", "chunk_edges")):
        assert set(chunks[key][0]) == set(TABLES[table].schema.names) - hidden
