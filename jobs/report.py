"""`raydex report [RUN]`: one self-contained HTML file about a run: funnel, stages, cost, content, rejects. No script, no network."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from raydex.cluster.delta import read_delta
from raydex.cluster.lake import Generation, Lake, load_generations, read_pinned
from raydex.ir.errors import ConfigError, StoreError
from raydex.jobs.reading import Reader
from raydex.jobs.render import STAGE_COLUMNS, STAGES_NOTE, stage_cells
from raydex.jobs.report_content import content_sections

REJECTS_SHOWN = 500

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2430;background:#fff}
h1{font-size:1.5rem;margin:0 0 .2rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}p.sub{color:#5b6675;margin:0 0 1rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #e3e8ee;vertical-align:top}
th{font-weight:600;color:#5b6675;font-size:.85rem}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.bar{display:grid;grid-template-columns:9rem 1fr 11rem;gap:.6rem;align-items:center;margin:.25rem 0}
.bar i{display:block;height:1.1rem;border-radius:3px;background:#2f6fb2}.bar i.warn{background:#d99a1c}.bar i.bad{background:#b8433c}
.bar i.done{background:#3a8f5c}.bar b{font-weight:500}.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(8rem,1fr));gap:.8rem}
.card{border:1px solid #e3e8ee;border-radius:6px;padding:.6rem 1rem}.card b{display:block;font-size:1.4rem}
.card span{color:#5b6675;font-size:.85rem}code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}td:has(code){min-width:14rem}
img{max-width:8rem;max-height:8rem;border:1px solid #e3e8ee}h3{font-size:1rem;margin:1.2rem 0 0}
p.error{border-left:4px solid #b8433c;padding:.3rem .8rem;white-space:pre-wrap}
@media(prefers-color-scheme:dark){
body{background:#14181d;color:#dde3ea}th,p.sub,.card span{color:#93a0af}td,th,.card{border-color:#2a323c}}
"""


def write_report(root: Path, run: str | None, out: Path | None) -> Path:
    """Writes the report of a run (default: the last one) and returns its path. ConfigError when the run is unknown."""
    lake = Lake.open(root)
    row = _find_run(lake, run)
    target = out or Path(lake.root) / "runs" / f"{row['run_id']}.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(render_report(lake, row), encoding="utf-8")
    return target


def _find_run(lake: Lake, run: str | None) -> dict[str, Any]:
    """The run whose id begins with `run`, or the last one, whether it ended well or not."""
    rows = read_delta(lake.tables, "runs").sort_by([("started_at", "descending")]).to_pylist()
    if not rows:
        raise ConfigError("the lake has no finished run", place=str(lake.root), remedy="Run `raydex index` until it ends")
    found: list[dict[str, Any]] = [row for row in rows if row["run_id"].startswith(run or "")]
    if not found:
        raise ConfigError(f"there is no run {run}", place=str(lake.root), remedy=f"The last one is {rows[0]['run_id']}")
    return found[0]


def render_report(lake: Lake, row: dict[str, Any]) -> str:
    """The page. What is in the generation is read as the run's own generation pins it, not as it is now."""
    summary = orjson.loads(row["summary"])
    head = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>raydex run {escape(row['run_id'][:12])}</title><style>{STYLE}</style>",
        f"<h1>Run {escape(row['run_id'])}{'' if row['state'] == 'complete' else ' ' + escape(row['state'])}</h1>",
        f"<p class=sub>{row['started_at']:%Y-%m-%d %H:%M:%S} UTC, raydex {escape(row['version'])}, generation {row['generation']}, "
        f"lake <code>{escape(str(lake.root))}</code></p>",
    ]
    if "records" not in summary:
        after = f"generation {row['generation']} stayed active" if row["generation"] else "there was no generation yet"
        body = [
            f"<p class=error>{escape(summary.get('error', 'no error was recorded'))}</p>",
            f"<p>It ended after {summary.get('seconds', 0):.1f} s; {after}. Run the same command again: it goes on from what was "
            "committed.</p>",
        ]
        return "\n".join([*head, *body, "</html>"])
    records, stages = summary["records"], summary["stages"]
    body = [
        _cards(summary),
        "<h2>From records to indexed</h2>",
        _funnel(records),
        "<h2>Stages</h2>",
        _stages(stages),
        "<h2>What it cost</h2>",
        _cost(stages, summary),
        _content(lake, row["generation"]),
    ]
    return "\n".join([*head, *body, "</html>"])


def _content(lake: Lake, number: int) -> str:
    """What a generation holds and refuses, or a paragraph that says why it cannot be read: old versions go with a vacuum."""
    found = [generation for generation in load_generations(lake) if generation.number == number]
    if not found:
        return f"<h2>Rejects</h2><p>Not known: generation {number} is not in the lake.</p>"
    try:
        ledger = _ledger(lake, found[0])
    except StoreError as error:
        return f"<h2>Rejects</h2><p>Not known: the records of generation {number} are no longer readable ({escape(error.message)}).</p>"
    about = f"<p class=sub>What follows is in generation {number}.</p>"
    return about + content_sections(Reader(lake, found[0]), ledger) + "<h2>Rejects</h2>" + _rejects(ledger)


def _ledger(lake: Lake, generation: Generation) -> pa.Table:
    columns = ["record_id", "parent_id", "path", "uri", "media_type", "reject_class", "error", "state", "attempts"]
    return read_pinned(lake, generation, "records", columns=columns)


def _cards(summary: dict[str, Any]) -> str:
    rows = summary.get("rows", {})
    cards = [
        (f"{summary['seconds']:.1f} s", "wall time"),
        (summary["records"]["seen"], "records seen"),
        (rows.get("blocks", 0), "blocks written"),
        (rows.get("chunks", 0), "chunks written"),
        (rows.get("embeddings", 0), "vectors written"),
        (summary.get("stores", {}).get("graph", {}).get("edges", 0), "graph edges"),
    ]
    return "<div class=cards>" + "".join(f"<div class=card><b>{escape(str(v))}</b><span>{k}</span></div>" for v, k in cards) + "</div>"


def _funnel(records: dict[str, int]) -> str:
    most = max(records["seen"], records["deleted"], 1)
    again, retried = records.get("reprocessed", 0), records.get("retried", 0)  # older runs do not tell them apart
    rows = [
        ("seen", records["seen"], ""),
        ("unchanged", records["unchanged"], ""),
        ("new", records["new"], ""),
        ("changed", records["changed"] - again - retried, ""),
        ("reprocessed", again, ""),
        ("tried again", retried, ""),
        ("indexed", records["indexed"], "done"),
        ("degraded", records["degraded"], "warn"),
        ("rejected", records["rejected"], "bad"),
        ("deleted", records["deleted"], ""),
    ]
    return "".join(
        f"<div class=bar><b>{name}</b><span><i class='{kind}' style='width:{100 * count / most:.1f}%'></i></span><span>{count}</span></div>"
        for name, count, kind in rows
    )


def _stages(stages: dict[str, dict[str, Any]]) -> str:
    def line(name: str, cells: tuple[str, ...], tag: str) -> str:
        return f"<tr><{tag}>{escape(name)}" + "".join(f"<{tag} class=n>{cell}" for cell in cells)

    head = line("stage", tuple(STAGE_COLUMNS.values()), "th")
    lines = [line(name, stage_cells(name, figures), "td") for name, figures in stages.items()]
    return f"<table>{head}{''.join(lines)}</table><p class=sub>{STAGES_NOTE}</p>"


def _cost(stages: dict[str, dict[str, Any]], summary: dict[str, Any]) -> str:
    cpu = sum(f["cpu_seconds"] for f in stages.values())
    gpu = sum(f["gpu_seconds"] for f in stages.values())
    most = max((f["cpu_seconds"] + f["gpu_seconds"] for f in stages.values()), default=0) or 1
    bars = "".join(
        f"<div class=bar><b>{escape(name)}</b><span><i style='width:{100 * (f['cpu_seconds'] + f['gpu_seconds']) / most:.1f}%'></i></span>"
        f"<span>{f['cpu_seconds']:.1f} CPU s, {f['gpu_seconds']:.1f} GPU s</span></div>"
        for name, f in stages.items()
        if f["cpu_seconds"] or f["gpu_seconds"]
    )
    start = summary.get("started_seconds", {}).get("ray_start", 0)
    return f"<p>{cpu:.1f} CPU-seconds and {gpu:.1f} GPU-seconds in the stages; starting Ray took {start:.1f} s.</p>{bars}"


def _rejects(ledger: pa.Table) -> str:
    bad = ledger.filter(pc.not_equal(ledger.column("reject_class"), "")).sort_by([("reject_class", "ascending"), ("path", "ascending")])
    if bad.num_rows == 0:
        return "<p>None.</p>"
    lines = "".join(
        f"<tr><td>{escape(row['reject_class'])}<td><a href='{escape(_link(row['uri']), quote=True)}'><code>{escape(row['path'])}</code></a>"
        f"<td>{escape(row['error'] or '')}<td>{escape(row['state'])}<td class=n>{row['attempts']}"
        for row in bad.slice(0, REJECTS_SHOWN).to_pylist()
    )
    more = f"<p>… and {bad.num_rows - REJECTS_SHOWN} more.</p>" if bad.num_rows > REJECTS_SHOWN else ""
    return f"<table><tr><th>class<th>file<th>error<th>state<th class=n>attempts{lines}</table>{more}"


def _link(uri: str) -> str:
    """Only schemes that a browser may follow without running anything."""
    return uri if uri.startswith(("file:", "s3:", "http:", "https:")) else "#"
