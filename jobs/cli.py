"""`raydex`: the command line. Each command is thin: it reads its options, calls one function, and prints for people or as `--json`.

Exit codes (contracts 20): 0 done; 1 new rejects in this run, unsupported types and old ones only with `--strict`; 2 configuration or
usage; 3 an engine, store or lock failed; 130/143 by signal, resumable. Heavy packages are imported inside the commands, so that the start
stays under a second.
"""

from __future__ import annotations

import io
import signal
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="raydex",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Index documents, tickets and source code into typed IR, chunks, vectors and a verified graph.",
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LakeDir = Annotated[Path, typer.Option("--lake", envvar="RAYDEX_LAKE", help="Folder of the lake.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Strict = Annotated[bool, typer.Option("--strict", help="Unsupported types and old rejects also exit 1.")]
ConfigFile = Annotated[Path | None, typer.Option("-c", "--config", help="YAML file; unknown keys are errors.")]


@app.command()
def index(
    sources: Annotated[list[str], typer.Argument(help="Files, folders, globs, git repositories or object-store URIs.")],
    lake: LakeDir,
    config: ConfigFile = None,
    workspace: Annotated[str | None, typer.Option(help="Workspace; ids are made of it.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the source (default: repository or folder name).")] = None,
    repo: Annotated[str | None, typer.Option(help="Repository name, instead of what git says.")] = None,
    commit: Annotated[str | None, typer.Option(help="Commit, instead of what git says.")] = None,
    allow_empty: Annotated[bool, typer.Option(help="Let a source that lists nothing delete its records.")] = False,
    max_delete_share: Annotated[float | None, typer.Option(help="Stop when more than this share would be deleted.", min=0, max=1)] = None,
    strict: Strict = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Index sources into a lake: only what changed is touched, a killed run continues."""
    from raydex.cluster.memory import give_memory_back
    from raydex.configs.settings import load_settings
    from raydex.jobs.index import IndexRequest
    from raydex.jobs.index import index as run_index

    give_memory_back()
    overrides = {"workspace": workspace} if workspace else {}
    request = IndexRequest(
        specs=tuple(sources),
        lake=str(lake),
        settings=load_settings(config, overrides),
        name=name,
        repository=repo,
        commit=commit,
        allow_empty=allow_empty,
        max_delete_share=max_delete_share,
        progress=not quiet,
        say=_say(quiet),
    )
    summary = run_index(request)
    _finish_run(summary, json, strict)


@app.command()
def retry(
    lake: LakeDir,
    config: ConfigFile = None,
    reject_class: Annotated[str | None, typer.Option("--class", help="Only rejects of this class.")] = None,
    strict: Strict = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the dead letters again, and nothing else; without -c as the last run was configured."""
    from raydex.cluster.memory import give_memory_back
    from raydex.jobs.retry import retry as run_retry

    give_memory_back()
    summary = run_retry(lake, _settings(config, lake), reject_class, progress=not quiet, say=_say(quiet))
    _finish_run(summary, json, strict)


def _finish_run(summary: dict[str, Any], json: bool, strict: bool) -> None:
    from raydex.jobs.render import print_json, print_summary

    if json:
        print_json(summary)
    else:
        print_summary(summary)
    _exit_by_rejects(summary["rejects"], strict and summary["records"]["rejected"] > 0)


def _exit_by_rejects(classes: Iterable[str], also: bool) -> None:
    """Exit code 1 when a reject is of another class than an unsupported type, or `also` (contracts 20)."""
    if also or any(name != "unsupported_media_type" for name in classes):
        raise typer.Exit(1)


def _settings(config: Path | None, lake: Path) -> Any:
    """What -c says, else the configuration of the lake's last run."""
    from raydex.cluster.lake import Lake
    from raydex.configs.settings import load_settings
    from raydex.jobs.last_settings import settings_of_last_run

    return load_settings(config) if config else settings_of_last_run(Lake.open(lake))


@app.command()
def parse(
    file: Annotated[Path, typer.Argument(help="File to parse.")],
    config: ConfigFile = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """IR of one file: no lake, no Ray."""
    from raydex.configs.settings import load_settings
    from raydex.jobs.one_file import parse_large, parse_one
    from raydex.jobs.render import all_rejects, print_json, print_large, print_parsed

    settings = load_settings(config)
    large = parse_large(file, settings)
    if large is not None:
        classes = print_large(large, json=json)
        _exit_by_rejects(iter(classes), strict and bool(classes))
        return
    parsed = parse_one(file, settings)
    if json:
        print_json(parsed)
    else:
        print_parsed(parsed)
    classes = all_rejects(parsed)
    _exit_by_rejects(classes, strict and bool(classes))


@app.command()
def chunk(
    file: Annotated[Path, typer.Argument(help="File to chunk.")],
    config: ConfigFile = None,
    strategy: Annotated[str | None, typer.Option(help="Chunking strategy.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Token limit of the embedded text.", min=16, max=1_000_000)] = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Chunks of one file: no lake, no Ray."""
    from raydex.configs.settings import load_settings
    from raydex.jobs.one_file import chunk_one
    from raydex.jobs.render import print_chunks, print_json

    result = chunk_one(file, load_settings(config), strategy, max_tokens)
    if json:
        print_json(result)
    else:
        print_chunks(result)
    _exit_by_rejects((reject["class"] for reject in result["rejects"]), strict and bool(result["rejects"]))


@app.command()
def search(
    text: Annotated[str, typer.Argument(help="What to look for.")],
    lake: LakeDir,
    k: Annotated[int, typer.Option("-k", help="Hits.", min=1, max=1000)] = 10,
    source_type: Annotated[
        str | None, typer.Option(help="code, document, office, sheet, deck, mail, ticket, image, data, log, archive, or a media type.")
    ] = None,
    json: Json = False,
) -> None:
    """Search the active generation; works on a read-only lake and beside a running index."""
    from raydex.jobs.render import print_hits, print_json
    from raydex.jobs.search import search as run_search

    result = run_search(lake, text, k, source_type)
    if json:
        print_json(result)
    else:
        print_hits(result)


@app.command()
def status(lake: LakeDir, json: Json = False) -> None:
    """Records by state, rejects by class, last runs, store counts."""
    from raydex.jobs.render import print_json, print_status
    from raydex.jobs.status import lake_status

    result = lake_status(lake)
    if json:
        print_json(result)
    else:
        print_status(result)


@app.command()
def documents(
    lake: LakeDir,
    config: ConfigFile = None,
    state: Annotated[str | None, typer.Option(help="Only this state: indexed, degraded, rejected, unindexed, unknown.")] = None,
    reject_class: Annotated[str | None, typer.Option("--class", help="Only rejects of this class.")] = None,
    source_type: Annotated[str | None, typer.Option("--source-type", "--type", help="As of search, or a media type.")] = None,
    json: Json = False,
) -> None:
    """Documents with the index as truth: what the stores hold, merged with what the registry says (-c: its address)."""
    from raydex.jobs.documents import list_documents
    from raydex.jobs.render import print_documents, print_json

    url = _settings(config, lake).stores.registry
    result = list_documents(lake, url, state=state, reject_class=reject_class, source_type=source_type)
    if json:
        print_json(result)
    else:
        print_documents(result)


@app.command()
def show(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="Id of a record, block, chunk, node, symbol or edge.")],
    lake: LakeDir,
    json: Json = False,
) -> None:
    """One thing by id, with its locator and the source's own text at it."""
    from raydex.jobs.render import print_json, print_shown
    from raydex.jobs.show import show as run_show

    result = run_show(lake, identifier)
    if json:
        print_json(result)
    else:
        print_shown(result)


@app.command()
def path(
    source: Annotated[str, typer.Argument(metavar="FROM", help="Id, qualified name, name or path.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Id, qualified name, name or path.")],
    lake: LakeDir,
    max_hops: Annotated[int, typer.Option(help="Longest path.", min=1, max=30)] = 8,
    limit: Annotated[int, typer.Option("-k", help="Most paths, of equal length.", min=1, max=100)] = 3,
    json: Json = False,
) -> None:
    """Shortest graph path with the evidence of every edge."""
    from raydex.jobs.paths import find_path
    from raydex.jobs.render import print_json, print_path

    result = find_path(lake, source, target, max_hops, limit)
    if json:
        print_json(result)
    else:
        print_path(result)


@app.command()
def edges(
    lake: LakeDir,
    relation: Annotated[str | None, typer.Option(help="Only this relation.")] = None,
    confidence: Annotated[str | None, typer.Option(help="Only this confidence; EXTRACTED includes VERIFIED.")] = None,
    json: Json = False,
) -> None:
    """Canonical edges, one JSON object a line for each evidence."""
    from raydex.jobs.edges import list_edges
    from raydex.jobs.render import write_json_line

    del json  # the output is JSON lines either way
    for row in list_edges(lake, relation, confidence):
        write_json_line(row)


@app.command()
def verify(lake: LakeDir, json: Json = False) -> None:
    """Prove the active generation: counts, keys, evidence, vectors, stores."""
    from raydex.jobs.render import print_json, print_verdict
    from raydex.jobs.verify import verify as run_verify

    result = run_verify(lake)
    if json:
        print_json(result)
    else:
        print_verdict(result)
    if not result["ok"]:
        raise typer.Exit(3)


@app.command()
def report(
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="Run id (default: the last run).")] = None,
    *,
    lake: LakeDir,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="HTML file to write (default: beside the run's facts).")] = None,
    json: Json = False,
) -> None:
    """One self-contained HTML file about a run."""
    from raydex.jobs.render import print_json
    from raydex.jobs.report import write_report

    target = write_report(lake, run, out)
    if json:
        print_json({"report": str(target)})
    else:
        typer.echo(f"report: {target}")


@app.command()
def doctor(
    config: ConfigFile = None,
    json: Json = False,
    fetch: Annotated[bool, typer.Option("--fetch", help="Also fetch what is missing (Spark's jars).")] = False,
) -> None:
    """Check what a run with this configuration needs (Java, jars, model, GPUs, stores, isolation); every problem comes with its remedy."""
    from raydex.configs.settings import load_settings
    from raydex.jobs.doctor import examine
    from raydex.jobs.render import print_doctor, print_json

    result = examine(load_settings(config), fetch=fetch)
    if json:
        print_json(result)
    else:
        print_doctor(result)
    if not result["ok"]:
        raise typer.Exit(3)


@app.command()
def version(json: Json = False) -> None:
    """Version of raydex."""
    from importlib.metadata import version as installed

    if json:
        typer.echo(f'{{"version": "{installed("raydex")}"}}')
    else:
        typer.echo(installed("raydex"))


def _say(quiet: bool) -> Any:
    def say(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    return say


class Stopped(BaseException):
    """A signal asked us to stop; `code` is the exit code."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.code = 128 + signum


def _stop(signum: int, _frame: object) -> None:
    raise Stopped(signum)


def run(arguments: list[str]) -> int:
    """Runs one command and returns its exit code; errors become messages, a defect also its traceback."""
    from raydex.jobs.failures import UnforeseenError, as_failure

    try:
        app(arguments, prog_name="raydex", standalone_mode=True)
    except SystemExit as stop:
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":
            return 0  # whoever read our output has gone: typer puts this in its place and would exit with 1
        if stop.code != signal.SIGTERM:
            return int(stop.code or 0)
        return _stopped(128 + signal.SIGTERM)  # while Ray starts, its own handler turns SIGTERM into an exit with the bare number
    except Stopped as stopped:
        return _stopped(stopped.code)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has gone
        return 0
    except Exception as error:  # noqa: BLE001 - the last place where an exception can become an exit code
        failure = as_failure(error)
        if isinstance(failure, UnforeseenError):
            traceback.print_exception(error)
        sys.stderr.write(f"raydex: {failure}\n")
        return failure.exit_code
    return 0


def _stopped(code: int) -> int:
    sys.stderr.write("raydex: stopped; run the same command again to go on\n")
    return code


def main() -> None:
    """Entry point."""
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, _stop)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal of another encoding shows what it can
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
