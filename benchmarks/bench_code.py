"""Source code → CodeIR rows beside the bare parsers, one core, one run: `ast.parse` over the standard library, tree-sitter over TypeScript.

    python benchmarks/bench_code.py [--python DIR] [--typescript DIR] [--megabytes 8]

Prints MB/s of both sides and their ratio. The rows are those of this release: symbols, AST, calls and imports; CFG and DFG are not in it.
"""

from __future__ import annotations

import argparse
import ast
import sysconfig
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from verdict import verdict

from raydex.ir.parsed import ParsedFile
from raydex.kernels.python_code import parse_python
from raydex.kernels.request import ParseRequest
from raydex.kernels.typescript import parse_typescript


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--python", type=Path, default=Path(sysconfig.get_path("stdlib")))
    arguments.add_argument("--typescript", type=Path)
    arguments.add_argument("--megabytes", type=float, default=8)
    options = arguments.parse_args()
    files = read(options.python, (".py",), options.megabytes)
    files = [(path, data) for path, data in files if parses(data)]
    why = "every node of the tree gets its row and its hashed id in Python, while the bare parser makes the tree in C"
    ratio = compare("python", files, ast.parse, lambda path, data: parse_python(request(path, data, "text/x-python")))
    verdict("code: Python, MB/s ÷ bare ast (without CFG and DFG)", ratio, 0.15, why)
    files = read(options.typescript, (".ts",), options.megabytes) if options.typescript else [("made.ts", made_typescript())]
    from tree_sitter_language_pack import get_parser

    ratio = compare(
        "typescript", files, get_parser("typescript").parse, lambda path, data: parse_typescript(request(path, data, "text/x-typescript"))
    )
    verdict("code: TypeScript, MB/s ÷ bare tree-sitter (without CFG and DFG)", ratio, 0.1, why)


def read(root: Path, suffixes: tuple[str, ...], megabytes: float) -> list[tuple[str, bytes]]:
    """Files in path order up to the size, without packages that are installed below."""
    out: list[tuple[str, bytes]] = []
    size = 0
    for path in sorted(root.rglob("*")):
        if path.suffix not in suffixes or "site-packages" in path.parts or path.name.endswith(".d.ts") or not path.is_file():
            continue
        data = path.read_bytes()
        if data and size < megabytes * 1e6:
            out.append((path.relative_to(root).as_posix(), data))
            size += len(data)
    return out


def parses(data: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(data)
        except (SyntaxError, ValueError):
            return False
    return True


def made_typescript() -> bytes:
    unit = (
        "export class Shelf{n} extends Base {\n  private items: Map<string, number> = new Map();\n"
        "  /** Takes one. */\n  take(part: string, count = 1): number {\n    const have = this.items.get(part) ?? 0;\n"
        "    if (have < count) { throw new Error(`only ${have} of ${part}`); }\n    this.items.set(part, have - count);\n"
        "    return this.count(part);\n  }\n  count(part: string): number { return this.items.get(part) ?? 0; }\n}\n"
        "export const fill{n} = (shelf: Shelf{n}, parts: string[]) => parts.map((p) => shelf.take(p, 2)).filter(Boolean);\n"
    )
    return "".join(unit.replace("{n}", str(n)) for n in range(2000)).encode()


def request(path: str, data: bytes, media_type: str) -> ParseRequest:
    return ParseRequest("rec_bench", "hash", path, media_type, data, repository="bench")


def compare(
    name: str, files: list[tuple[str, bytes]], bare: Callable[[bytes], object], ours: Callable[[str, bytes], ParsedFile], rounds: int = 3
) -> float:
    """Ratio of the rates. The sides take turns file by file, so that both see the same machine; of each file and side the best round
    counts."""
    size = sum(len(data) for _, data in files) / 1e6
    times = {path: [float("inf"), float("inf")] for path, _ in files}
    rows = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(rounds):
            rows = 0
            for path, data in files:
                start = time.perf_counter()
                bare(data)
                middle = time.perf_counter()
                parsed = ours(path, data)
                end = time.perf_counter()
                best = times[path]
                best[0], best[1] = min(best[0], middle - start), min(best[1], end - middle)
                rows += len(parsed.symbols) + len(parsed.code_nodes["node_id"]) + len(parsed.code_edges["edge_id"])
    best_bare = sum(best[0] for best in times.values())
    best_ours = sum(best[1] for best in times.values())
    ratio = best_bare / best_ours
    print(f"{name}: {len(files)} files, {size:.2f} MB, {rows} rows")
    print(f"  bare parser {size / best_bare:6.2f} MB/s   raydex {size / best_ours:6.2f} MB/s   ratio {ratio:.3f}")
    return ratio


if __name__ == "__main__":
    main()
