"""Results → the terminal: JSON on request, tables for people. Nothing here decides anything."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from raydex.jobs.wording import block_words, place_words, places_words, record_counts, ticket_part

WIDTH = 110
PIPED_WIDTH = 100_000  # what another program reads is not wrapped, whatever the terminal is like
ROWS_SHOWN = 200
TEXT_SHOWN = 90
ERROR_PIPED = 300
# all but tab and line feed
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def print_json(value: Any) -> None:
    """One object on one line."""
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS, default=str))
    sys.stdout.flush()


write_json_line = print_json


def print_large(objects: Iterator[dict[str, Any]], *, json: bool) -> list[str]:
    """What `parse` says of a file that comes in segments, which are never all in memory; returns the classes of the rejects. As JSON it is
    one object with its children, as of any file."""
    head = next(objects)
    classes = [reject["class"] for reject in head["rejects"]]
    out = sys.stdout.buffer
    if json:
        out.write(orjson.dumps({**head, "children": []}, option=orjson.OPT_NON_STR_KEYS, default=str).removesuffix(b"]}"))
    else:
        print_parsed(head)
    segments = blocks = 0
    for one in objects:
        if json:
            out.write((b"," if segments else b"") + orjson.dumps(one, option=orjson.OPT_NON_STR_KEYS, default=str))
        segments += 1
        blocks += len(one["blocks"])
        classes += [reject["class"] for reject in one["rejects"]]
    if json:
        out.write(b"]}\n")
        out.flush()
    else:
        _console().print(f"{segments} segments, {blocks} blocks in them.")
    return classes


def _console() -> Any:
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # whoever read our output has gone: rich would exit with 1, which means new rejects

    piped = None if sys.stdout.isatty() else PIPED_WIDTH
    return Terminal(highlight=False, soft_wrap=True, width=piped)


def _table(*columns: str, title: str | None = None) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in columns:
        right = column.startswith(">")
        # a figure is never broken over lines
        table.add_column(column.lstrip(">"), justify="right" if right else "left", overflow="ellipsis" if right else "fold", no_wrap=right)
    return table


def _text(value: Any) -> Any:
    """Text as it is, but for control characters: what documents and file names hold must not steer the terminal."""
    from rich.text import Text

    return Text("" if value is None else _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", str(value)))


def _line(value: Any) -> str:
    """A name on one line."""
    return str("" if value is None else value).replace("\n", "\\n").replace("\r", "\\r")


# the columns of the table of stages: as the terminal and as the report call them
STAGE_COLUMNS = {
    "rows in": "rows in",
    "rows out": "rows out",
    "rejects": "rejects",
    "queue": "highest queue",
    "actor s": "actor-seconds",
    "wall s": "wall seconds",
    "rows/s": "rows/s",
    "CPU s": "CPU seconds",
    "GPU s": "GPU seconds",
}
UNMEASURED = "–"
STAGES_NOTE = (
    "queue: the most records that waited before the stage. actor-seconds: added up over its actors. wall seconds of parse "
    "to embed: from the start of the stages to the last batch of this one, so that they overlap; rows/s is over wall seconds. "
    f"{UNMEASURED} was not measured."
)


def stage_cells(name: str, figures: dict[str, Any]) -> tuple[str, ...]:
    """One stage of a summary, in the order of `STAGE_COLUMNS`; what the run did not measure says so."""
    from raydex.jobs.context import STAGES

    in_actors = name in STAGES
    wall = figures.get("wall_seconds") if in_actors else figures["seconds"]
    queue = figures.get("queue")
    return (
        f"{figures['rows_in']:.0f}",
        f"{figures['rows_out']:.0f}",
        f"{figures['rejects']:.0f}",
        (UNMEASURED if queue is None else f"{queue:.0f}") if in_actors else "",
        f"{figures['seconds']:.1f}" if in_actors else "",
        UNMEASURED if wall is None else f"{wall:.1f}",
        f"{figures['rows_in'] / wall:.1f}" if wall else "",
        f"{figures['cpu_seconds']:.1f}",
        f"{figures['gpu_seconds']:.1f}",
    )


def print_summary(summary: dict[str, Any]) -> None:
    """The end of a run."""
    console = _console()
    if summary["stages"]:
        shown = len(STAGE_COLUMNS) if any(figures["gpu_seconds"] for figures in summary["stages"].values()) else -1
        table = _table("stage", *[f">{name}" for name in STAGE_COLUMNS][:shown])
        for name, figures in summary["stages"].items():
            table.add_row(name, *stage_cells(name, figures)[:shown])
        console.print(table)
        console.print(STAGES_NOTE)
    r = summary["records"]
    console.print(f"{r['seen']} records: {record_counts(r)}; {r['indexed']} indexed, {r['degraded']} degraded, {r['rejected']} rejected.")
    if any(summary["children"].values()):
        console.print(
            "Inside of them (attachments, files of archives): " + ", ".join(f"{n} {name}" for name, n in summary["children"].items())
        )
    if summary["rejects"]:
        console.print("Rejects of this run: " + ", ".join(f"{count} {name}" for name, count in summary["rejects"].items()))
        console.print("`raydex documents` names them.")
    console.print(f"Generation {summary['generation']}, {summary['seconds']:.1f} s, run {summary['run']}")


def print_parsed(parsed: dict[str, Any]) -> None:
    """A file, and what is inside of it; all of both is in `--json`."""
    console = _console()
    document = parsed["document"]
    if document:
        console.print(
            _text(f"{document['title']}  ({document['media_type']}, parser {document['parser']}, {document['encoding'] or 'binary'})")
        )
        if parsed["blocks"]:
            _print_blocks(console, parsed["blocks"])
        if parsed["symbols"]:
            table = _table("symbol", "kind", ">line", "signature")
            for symbol in parsed["symbols"][:ROWS_SHOWN]:
                table.add_row(_text(symbol["qualified_name"]), symbol["kind"], str(symbol["line"]), _text((symbol["signature"] or "")[:70]))
            console.print(table)
            _say_more(console, parsed["symbols"], "symbols")
        if parsed["observations"]:
            table = _table("seen by", "where", "status", ">confidence", "text")
            for row in parsed["observations"][:ROWS_SHOWN]:
                sure = "" if row["confidence"] is None else f"{row['confidence']:.2f}"
                engine = f"{row['kind']}: {row['engine']} {row['engine_version']}"
                table.add_row(_text(engine), _text(place_words(row["locator"])), row["status"], sure, _text(_short(row["text"])))
            console.print(table)
            _say_more(console, parsed["observations"], "observations")
        if parsed["children"]:
            _print_members(console, parsed)
        console.print(_text(_counts(parsed)))
    said = {reject["class"] for reject in parsed["rejects"]}
    for event in parsed["events"]:
        if event["name"] not in said:
            console.print(_text(": ".join(part for part in (event["status"], event["name"], event["message"]) if part)))
    for reject in parsed["rejects"]:
        console.print(_text(f"rejected ({reject['class']}): {reject['error']}"))


def _print_blocks(console: Any, blocks: list[dict[str, Any]]) -> None:
    table = _table(">#", "kind", "where", "text")
    for block in blocks[:ROWS_SHOWN]:
        where = place_words(block["locator"])
        table.add_row(str(block["ordinal"]), _text(block_words(block)), _text(where), _text(_short(block["text"])))
    console.print(table)
    _say_more(console, blocks, "blocks")


def _print_members(console: Any, parsed: dict[str, Any]) -> None:
    """Members of all depths, each on a line: what it is, or why it was refused."""
    table = _table("inside", "what", ">blocks", "begins with")
    members = list(_members(parsed))
    for member in members[:ROWS_SHOWN]:
        document, blocks = member["document"], member["blocks"]
        refused = ", ".join(f"rejected ({reject['class']}): {reject['error']}" for reject in member["rejects"])
        first = next((block["text"] for block in blocks if block["kind"] != "heading" and block["text"]), "")
        what = document["media_type"] if document else ""
        table.add_row(_text(_line(member["path"])), _text(what), str(len(blocks)), _text(refused or _short(first)))
    console.print(table)
    _say_more(console, members, "members")


def all_rejects(parsed: dict[str, Any]) -> list[str]:
    """Classes of the rejects of a file and of what is inside of it: a run counts both."""
    return [reject["class"] for one in (parsed, *_members(parsed)) for reject in one["rejects"]]


def _members(parsed: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for child in parsed["children"]:
        yield child
        yield from _members(child)


def _say_more(console: Any, rows: list[Any], name: str) -> None:
    if len(rows) > ROWS_SHOWN:
        console.print(f"{ROWS_SHOWN} of {len(rows)} {name} are shown; --json gives all.")


def _short(text: str, room: int = TEXT_SHOWN) -> str:
    """The beginning of a text on one line; an ellipsis tells that it goes on."""
    line = text[: room + 1].replace("\r\n", "⏎").replace("\n", "⏎").replace("\r", "⏎")
    return line if len(text) <= room else line[:room].rstrip("⏎ ") + "…"


def _counts(parsed: dict[str, Any]) -> str:
    """What there is of the file, without what there is none of."""
    states = Counter(page["text_state"] for page in parsed["pages"])
    pages = f"{_count(len(parsed['pages']), 'pages')} ({', '.join(f'{count} {name}' for name, count in sorted(states.items()))})"
    issue = parsed["issue"] or {}
    counted = [
        (len(parsed["blocks"]), "blocks"),
        (len(parsed["assets"]), "images"),
        (len(parsed["observations"]), "observations"),
        (sum(1 for _ in _members(parsed)), "files inside"),
        (len(issue.get("comments", ())), "comments"),
        (len(issue.get("changelog", ())), "changes"),
        (len(issue.get("worklogs", ())), "worklogs"),
        (len(issue.get("remote_links", ())), "remote links"),
        (len(parsed["symbols"]), "symbols"),
        (len(parsed["code_nodes"]), "code nodes"),
        (len(parsed["code_edges"]), "code edges"),
    ]
    found = [_count(count, name) for count, name in counted if count]
    return ", ".join([*([pages] if parsed["pages"] else []), *found] or ["no blocks"]) + "."


def _count(count: int, names: str) -> str:
    return f"{count} {names if count != 1 else names.replace('files', 'file').removesuffix('s')}"


def print_chunks(result: dict[str, Any]) -> None:
    console = _console()
    for item in result["chunks"]:
        mark = "▣" if item["role"] == "parent" else "·"
        about = f"[{item['kind']}, {item['token_count']} tokens, {item['boundary_reason']}]"
        head = f"{mark} {item['ordinal']:>3} {item['chunk_id']}  {item['title']}  {about}"
        console.print(_text(head))
        if item["role"] == "leaf":
            console.print(_text("      " + item["content"].replace("\n", "⏎")[:WIDTH]))
    for reject in result["rejects"]:
        console.print(_text(f"rejected ({reject['class']}): {reject['error']}"))
    console.print(f"{len(result['chunks'])} chunks, {len(result['nodes'])} nodes, {len(result['edges'])} edges.")


def print_hits(result: dict[str, Any]) -> None:
    console = _console()
    for hit in result["hits"]:
        place = f"{_line(hit['source'])}/{_line(hit['path'])}"
        console.print(_text(f"{hit['rank']:>2}. {hit['score']:.3f}  {place}  {_hit_place(hit['locators'])}".rstrip()))
        if trail := _hit_trail(hit):
            console.print(_text(f"    {trail}"))
        console.print(_text("    " + " ".join(hit["content"].split())[:220]))
        console.print(_text(f"    {hit['chunk_id']}" + (f"  {hit['entity_id']}" if hit["entity_id"] else "")))
    if result["truncated"]:
        console.print("The query is longer than the model reads: only its beginning was looked for.")
    console.print(f"{len(result['hits'])} hits in generation {result['generation']} ({result['engine']}).")


def _hit_place(locators: list[dict[str, Any]]) -> str:
    """Where a hit lies, and what part of a ticket it is."""
    places = places_words(locators) if locators else ""
    part = ticket_part(locators)
    return f"{places} ({part})" if part else places


def _hit_trail(hit: dict[str, Any]) -> str:
    """The headings down to a hit, and its title where it is neither one of them nor the name of its file."""
    trail = [heading for heading in hit["section_path"] if heading]
    title = hit["title"]
    named = hit["path"] == title or hit["path"].endswith((f"/{title}", f"!{title}"))
    if title and title not in trail and not named:
        trail.append(title)
    return " › ".join(map(_line, trail))


def print_status(result: dict[str, Any]) -> None:
    console = _console()
    console.print(_text(f"{result['lake']}: generation {result['generation']}"))
    _print_writer(console, result)
    for source in result["sources"]:
        commit = f" at {source['commit'][:12]}" if source["commit"] else ""
        dirty = f" ({len(source['dirty'])} dirty paths)" if source["dirty"] else ""
        console.print(_text(f"source {source['name']}: {source['kind']} {source['root']}{commit}{dirty}"))
    for title, key in (
        ("records", "records"),
        ("inside of them", "children"),
        ("rejects", "rejects"),
        ("missing", "missing"),
        ("rows", "tables"),
    ):
        if result[key]:
            table = _table(title, ">count")
            for name, count in result[key].items():
                table.add_row(name or "(unknown)", str(count))
            console.print(table)
    for kind, states in result["observations"].items():
        if states:
            console.print(f"{kind} of pages and images: " + ", ".join(f"{count} {state}" for state, count in states.items()))
    if any(result["backlog"].values()):
        waits = ", ".join(f"{stage} {count}" for stage, count in result["backlog"].items() if count)
        console.print(f"backlog: {waits} (observe and caption count images, the others records)")
    for name, cursor in result["stores"].items():
        console.print(_text(f"store {name}: " + ", ".join(f"{k} {v}" for k, v in cursor.items() if not isinstance(v, dict))))
    if result["runs"]:
        table = _table("run", "started", ">seconds", "state", ">generation")
        for run in result["runs"]:
            table.add_row(run["run"], run["started_at"][:19], str(run["seconds"]), run["state"], str(run["generation"]))
        console.print(table)


def _print_writer(console: Any, result: dict[str, Any]) -> None:
    """The run at work, or the one that ended before its time: killed, stopped or failed."""
    writer, unfinished = result["writer"], result["unfinished_run"]
    named = writer and f"run {writer['run_id']} (process {writer['pid']} on {writer['host']}, since {writer['started']})"
    if result["at_work"]:
        doing = "" if result["running"] else ": before its stages, or past them (projection, stores, checks)"
        console.print(_text(f"{named} is at work{doing}"))
    elif unfinished and writer and writer["life"] == "elsewhere":
        console.print(_text(f"{named} is silent for a minute; whether it is still there can be asked on {writer['host']} alone"))
    elif unfinished:
        run = named if writer and writer["run_id"] == unfinished else f"run {unfinished}"
        console.print(_text(f"{run} stopped without finishing; run `raydex index` again: {result['kept']}"))
    if result["running"]:
        table = _table("at work", ">done", ">of", ">queued", ">rejects")
        for stage, figures in result["running"].items():
            table.add_row(stage, *(str(figures[name]) for name in ("done", "total", "queued", "rejects")))
        console.print(table)


def print_documents(result: dict[str, Any]) -> None:
    """A table for people; another program gets a line a document, fields apart by tabs, under a line of their names."""
    rows = result["documents"]
    counted = f"{len(rows)} documents, {result['mismatches']} mismatches between stores and registry."
    if len(rows) != result["total"]:
        counted = f"{len(rows)} of {result['total']} documents, {result['mismatches']} mismatches between stores and registry."
    if not sys.stdout.isatty():
        fields = ("document", "title", "media type", "state", "chunks", "vectors", "error", "note")
        for line in (fields, *(_document_cells(row, ERROR_PIPED) for row in rows)):
            sys.stdout.write("\t".join(map(_plain, line)) + "\n")
        sys.stdout.flush()
        sys.stderr.write(counted + "\n")
        return
    console = _console()
    table = _table("document", "title", "state", ">chunks", ">vectors", "error", "note")
    for row in rows:
        document, title, _, *cells = _document_cells(row, TEXT_SHOWN)
        table.add_row(_text(_line(document)), _text(_line(title)[:50]), *(_text(_line(cell)) for cell in cells))
    console.print(table)
    console.print(counted)


def _document_cells(row: dict[str, Any], room: int) -> tuple[str, ...]:
    """Document, title, media type, state, chunks, vectors, error (its class, and how its message begins), note."""
    failed = ": ".join(part for part in (row["reject_class"], _short(row["error"], room)) if part)
    note = row["note"] or (f"lacks {', '.join(row['missing'])}" if row["missing"] else "")
    place = f"{row['source']}/{row['path']}"
    return place, row["title"], row["media_type"] or "", row["state"], str(row["chunks"]), str(row["vectors"]), failed, note


def _plain(text: str) -> str:
    """A field of a line: no tab, no line end, nothing that steers a terminal."""
    return str(_text(_line(text).replace("\t", "\\t")))


def print_shown(result: dict[str, Any]) -> None:
    console = _console()
    console.print(_text(f"{result['id']}  ({result['table']}, generation {result['generation']})"))
    for name, value in result["row"].items():
        if value not in (None, "", [], {}):
            text = orjson.dumps(value, default=str).decode() if isinstance(value, (dict, list)) else str(value)
            console.print(_text(f"  {name}: {text[:600]}"))
    if not {"locator", "locators"} & set(result["row"]):
        for place in result.get("locators", ()):
            console.print(_text(f"  locator: {orjson.dumps(place).decode()}"))
    for name in ("record", "source", "target"):
        if result.get(name):
            console.print(_text(f"  {name}: {orjson.dumps(result[name], default=str).decode()}"))
    for item in result.get("evidence", ()):
        _print_evidence(console, item, "  ")
    places = result.get("locators") or ()
    if part := ticket_part(places):
        console.print(_text(f"  part of the ticket: {part}"))
    if result.get("source_text"):
        console.print(_text("  source text:"))
        for line in str(result["source_text"])[:4000].splitlines():
            console.print(_text("  │ " + line))
    elif places and not result.get("evidence"):
        console.print("  source text: none; the original has no text at these places, or is gone")


def _print_evidence(console: Any, item: dict[str, Any], indent: str) -> None:
    if item.get("missing"):
        console.print(_text(f"{indent}evidence {item['evidence_id']} is missing"))
        return
    mark = {True: "intact", False: "CHANGED", None: "the file itself"}[item["intact"]]
    excerpt = f"  `{item['excerpt'].strip()[:100]}`" if item["excerpt"] else ""
    place = _line(item["path"]) if item["line"] is None else f"{_line(item['path'])}:{item['line']}"
    console.print(_text(f"{indent}{place}  rule {item['rule']}  {mark}{excerpt}"))


def print_path(result: dict[str, Any]) -> None:
    console = _console()
    for number, found in enumerate(result["paths"], 1):
        console.print(_text(f"path {number}: {len(found['edges'])} steps"))
        console.print(_text(f"  {found['nodes'][0]['kind']} {found['nodes'][0]['label']}"))
        for edge, node in zip(found["edges"], found["nodes"][1:]):
            arrow = "→" if edge["forward"] else "←"
            console.print(_text(f"    {arrow} {edge['relation']} ({edge['confidence']})"))
            for item in edge["evidence"]:
                _print_evidence(console, item, "        ")
            console.print(_text(f"  {node['kind']} {node['label']}"))
    if not result["paths"]:
        console.print(_text(f"no path of at most {result['max_hops']} steps from {result['from']['label']} to {result['to']['label']}"))


def print_verdict(result: dict[str, Any]) -> None:
    console = _console()
    table = _table("check", "result", "detail")
    for check in result["checks"]:
        table.add_row(check["name"], "FAILED" if check["result"] == "failed" else check["result"], _text(check["detail"]))
    console.print(table)
    blind = f" {result['not_checked']} could not be made." if result["not_checked"] else ""
    verdict = "NOT in order." if not result["ok"] else "no check failed." if blind else "all checks passed."
    console.print(f"Generation {result['generation']}: {verdict}{blind}")


def print_doctor(result: dict[str, Any]) -> None:
    console = _console()
    table = _table("what", "state", "detail", "remedy")
    for item in result["findings"]:
        table.add_row(item["name"], item["state"], _text(item["detail"]), _text(item["remedy"]))
    console.print(table)
    console.print("Everything that is needed is there." if result["ok"] else "Something that is needed is missing: see the remedies.")
