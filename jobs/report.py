"""`raydex report [RUN]`: one self-contained HTML file about a run: funnel, stages, rejects with links, cost. No script, no network."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import orjson
import pyarrow.compute as pc

from raydex.cluster.delta import read_delta
from raydex.cluster.lake import Lake, active_generation, read_pinned
from raydex.ir.errors import ConfigError

REJECTS_SHOWN = 500

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2430;background:#fff}
h1{font-size:1.5rem;margin:0 0 .2rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}p.sub{color:#5b6675;margin:0 0 1rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #e3e8ee;vertical-align:top}
th{font-weight:600;color:#5b6675;font-size:.85rem}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.bar{display:grid;grid-template-columns:9rem 1fr 8rem;gap:.6rem;align-items:center;margin:.25rem 0}
.bar i{display:block;height:1.1rem;border-radius:3px;background:#2f6fb2}.bar i.warn{background:#d99a1c}.bar i.bad{background:#b8433c}
.bar i.done{background:#3a8f5c}.bar b{font-weight:500}.cards{display:flex;flex-wrap:wrap;gap:.8rem}
.card{border:1px solid #e3e8ee;border-radius:6px;padding:.6rem 1rem;min-width:8rem}.card b{display:block;font-size:1.4rem}
.card span{color:#5b6675;font-size:.85rem}code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}
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
    rows = read_delta(lake.tables, "runs").sort_by([("started_at", "descending")]).to_pylist()
    if not rows:
        raise ConfigError("the lake has no finished run", place=str(lake.root), remedy="Run `raydex index` until it ends")
    found: list[dict[str, Any]] = [
        row for row in rows if (run is None and row["state"] == "complete") or (run and row["run_id"].startswith(run))
    ]
    if not found:
        raise ConfigError(f"there is no run {run}", place=str(lake.root), remedy=f"The last one is {rows[0]['run_id']}")
    return found[0]


def render_report(lake: Lake, row: dict[str, Any]) -> str:
    """The page."""
    summary = orjson.loads(row["summary"])
    if "records" not in summary:
        head = f"<!doctype html><html lang=en><meta charset=utf-8><title>raydex run</title><style>{STYLE}</style>"
        return f"{head}<h1>Run {escape(row['run_id'])} failed</h1><p>{escape(summary.get('error', ''))}</p></html>"
    records, stages = summary["records"], summary["stages"]
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>raydex run {escape(row['run_id'][:12])}</title><style>{STYLE}</style>",
        f"<h1>Run {escape(row['run_id'])}</h1>",
        f"<p class=sub>{row['started_at']:%Y-%m-%d %H:%M:%S} UTC, raydex {escape(row['version'])}, generation {summary['generation']}, "
        f"lake <code>{escape(str(lake.root))}</code></p>",
        _cards(summary),
        "<h2>From records to indexed</h2>",
        _funnel(records),
        "<h2>Stages</h2>",
        _stages(stages),
        "<h2>What it cost</h2>",
        _cost(stages, summary),
        "<h2>What is in the generation</h2>",
        _media_types(lake),
        "<h2>Rejects</h2>",
        _rejects(lake),
        "</html>",
    ]
    return "\n".join(parts)


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
    rows = [
        ("seen", records["seen"], ""),
        ("unchanged", records["unchanged"], ""),
        ("new", records["new"], ""),
        ("changed", records["changed"], ""),
        ("indexed", records["indexed"], "done"),
        ("degraded", records["degraded"], "warn"),
        ("rejected", records["rejected"], "bad"),
        ("deleted", records["deleted"], ""),
    ]
    return "".join(
        f"<div class=bar><b>{name}</b><span><i class='{kind}' style='width:{100 * count / most:.1f}%'></i></span><span>{count}</span></div>"
        for name, count, kind in rows
    )


def _stages(stages: dict[str, dict[str, float]]) -> str:
    head = "<tr><th>stage<th class=n>rows in<th class=n>rows out<th class=n>rejects<th class=n>queue<th class=n>seconds<th class=n>rows/s"
    lines = []
    for name, f in stages.items():
        rate = f["rows_in"] / f["seconds"] if f["seconds"] else 0
        queue = max(f["rows_in"] - f["rows_out"] - f["rejects"], 0) if name in ("parse",) else 0
        cells = (f"{f['rows_in']:.0f}", f"{f['rows_out']:.0f}", f"{f['rejects']:.0f}", f"{queue:.0f}", f"{f['seconds']:.1f}", f"{rate:.1f}")
        lines.append(f"<tr><td>{escape(name)}" + "".join(f"<td class=n>{cell}" for cell in cells))
    return f"<table>{head}{''.join(lines)}</table>"


def _cost(stages: dict[str, dict[str, float]], summary: dict[str, Any]) -> str:
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


def _media_types(lake: Lake) -> str:
    ledger = read_pinned(lake, active_generation(lake), "records", columns=["media_type", "state"])
    counts = (
        ledger.group_by(["media_type", "state"])
        .aggregate([([], "count_all")])
        .sort_by([("media_type", "ascending"), ("state", "ascending")])
    )
    lines = "".join(
        f"<tr><td>{escape(row['media_type'] or '(unknown)')}<td>{escape(row['state'])}<td class=n>{row['count_all']}"
        for row in counts.to_pylist()
    )
    return f"<table><tr><th>media type<th>state<th class=n>records{lines}</table>"


def _rejects(lake: Lake) -> str:
    ledger = read_pinned(
        lake, active_generation(lake), "records", columns=["record_id", "path", "uri", "reject_class", "error", "state", "attempts"]
    )
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
