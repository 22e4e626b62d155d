"""The measuring part of scripts/realworld: runs the command line as a user would and checks what it prints."""

from __future__ import annotations

import gzip
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / ".cache" / "realworld"
RAYDEX = [sys.executable, "-m", "raydex.jobs.cli"]


def tree_memory(pid: int) -> tuple[int, int]:
    """(resident bytes of one process, proportional bytes of it and all its descendants)."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    own = total = 0
    queue = [pid]
    while queue:
        at = queue.pop()
        queue.extend(children.get(at, ()))
        try:
            text = Path(f"/proc/{at}/smaps_rollup").read_text()
        except OSError:
            continue
        sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in text.splitlines()[1:] if line.split()[1].isdigit()}
        total += sizes.get("Pss", 0)
        if at == pid:
            own = sizes.get("Rss", 0)
    return own, total


class Peak:
    """Peak memory of the driver and of the whole tree, sampled while a command runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.driver = self.tree = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self) -> None:
        while not self.over.wait(3.0):
            own, total = tree_memory(self.pid)
            self.driver, self.tree = max(self.driver, own), max(self.tree, total)


def run(*arguments: str, ok: tuple[int, ...] = (0, 1)) -> tuple[dict[str, Any], Peak, float]:
    print(f"$ raydex {' '.join(arguments)}", flush=True)
    started = time.monotonic()
    process = subprocess.Popen([*RAYDEX, *arguments, "--json"], stdout=subprocess.PIPE, cwd=ROOT)
    peak = Peak(process.pid)
    out = process.communicate()[0]
    peak.over.set()
    seconds = time.monotonic() - started
    if process.returncode not in ok:
        sys.exit(f"FAILED: exit code {process.returncode}")
    return json.loads(out.splitlines()[-1]), peak, seconds


def copy_sources(docs: Path) -> tuple[Path, Path]:
    """Copies of both trees, so that files may be touched; the library's .py files only."""
    code, pages = WORK / "stdlib", WORK / "debian-docs"
    shutil.rmtree(code, ignore_errors=True)
    shutil.rmtree(pages, ignore_errors=True)
    library = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(library.rglob("*.py")):
        relative = path.relative_to(library)
        if "site-packages" in relative.parts or not path.is_file():
            continue
        target = code / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    for path in sorted(docs.rglob("*")):
        packed = path.suffix == ".gz"  # Debian packs larger documents
        target = pages / path.relative_to(docs)
        target = target.with_suffix("") if packed else target
        if target.suffix.lower() in (".html", ".htm", ".pdf") and path.is_file() and not path.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(gzip.decompress(path.read_bytes()) if packed else path.read_bytes())
    return code, pages


def main() -> int:
    started = time.monotonic()
    docs = Path(sys.argv[1])
    code, pages = copy_sources(docs)
    lake = WORK / "lake"
    shutil.rmtree(lake, ignore_errors=True)
    failures: list[str] = []

    def expect(what: str, holds: bool, detail: object = "") -> None:
        print(f"  {'ok  ' if holds else 'FAIL'} {what} {detail}", flush=True)
        if not holds:
            failures.append(what)

    index = ("index", str(code), str(pages), "--lake", str(lake))
    full, peak, seconds = run(*index)
    records, rows = full["records"], full["rows"]
    files = sum(1 for tree in (code, pages) for path in tree.rglob("*") if path.is_file())
    expect("every file is a record", records["seen"] == files, f"{files} files")
    expect("the counts add up", records["indexed"] + records["degraded"] + records["rejected"] == records["seen"], records)
    expect("new + changed + unchanged = seen", records["new"] + records["changed"] + records["unchanged"] == records["seen"])
    verdict, _, _ = run("verify", "--lake", str(lake))
    expect("verify", verdict["ok"], [check["detail"] for check in verdict["checks"] if not check["ok"]])

    again, _, noop = run(*index)
    idle = all(figures["rows_in"] == 0 for name, figures in again["stages"].items() if name != "list")
    expect("a second run does no stage work", idle and again["records"]["unchanged"] == records["seen"], f"{noop:.1f} s")

    (code / "json" / "decoder.py").open("a").write("\n\ndef added_by_realworld():\n    return JSONDecodeError\n")
    touched, _, _ = run(*index)
    expect("touching one file re-does one file", touched["stages"]["parse"]["rows_in"] == 1 and touched["records"]["changed"] == 1)

    gone = sum(1 for path in (code / "idlelib").rglob("*.py"))
    shutil.rmtree(code / "idlelib")
    removed, _, _ = run(*index)
    expect("removing a folder removes its records", removed["records"]["deleted"] == gone, gone)
    verdict, _, _ = run("verify", "--lake", str(lake))
    expect("verify after the removal", verdict["ok"], [check["detail"] for check in verdict["checks"] if not check["ok"]])
    out = subprocess.run([*RAYDEX, "edges", "--lake", str(lake)], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    expect("no edge of the removed folder is left", '"file":"idlelib/' not in out, f"{len(out.splitlines())} edge lines")

    small = WORK / "small.yaml"
    small.write_text("chunk:\n  max_tokens: 192\n")
    if "--with-rechunk" in sys.argv:
        cut, _, _ = run(*index, "-c", str(small))
        expect("another chunk size does not parse", cut["stages"]["parse"]["rows_in"] == 0 and cut["stages"]["chunk"]["rows_in"] > 0)

    stage_seconds = full["started_seconds"].get("stages", seconds)
    page_rows = rows.get("pages", 0)
    print()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    chunks, nodes = rows.get("chunks", 0), rows.get("code_nodes", 0)
    print(f"machine: {platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}")
    print(f"{files} files, {full['bytes_listed'] / 1e6:.0f} MB, {page_rows} PDF pages, {chunks} chunks, {nodes} code nodes")
    rates = f"{files / seconds:.1f} documents/s, {page_rows / seconds:.1f} PDF pages/s, {chunks / seconds:.1f} chunks/s"
    print(f"wall {seconds:.0f} s (stages {stage_seconds:.0f} s): {rates}")
    print(f"peak memory: driver {peak.driver / 2**20:.0f} MiB, all processes {peak.tree / 2**20:.0f} MiB")
    for name, figures in full["stages"].items():
        print(f"  {name:<8} {figures['rows_in']:>9.0f} rows in {figures['seconds']:>8.1f} s  {figures['rejects']:>5.0f} rejects")
    print(f"second run: {noop:.1f} s; listing and hashing alone {again['started_seconds']['list']:.1f} s")
    print(f"rejects: {full['rejects']}")
    total = time.monotonic() - started
    expect("at most 60 minutes", total < 3600, f"{total / 60:.1f} min")
    print(f"{'FAILED: ' + '; '.join(failures) if failures else 'PASSED'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
