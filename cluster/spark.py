"""One local Spark with GraphFrames: the machine's Java, two resolved jar sets and a work folder become a SparkSession.

Jars are resolved once (`fetch_jars`, through Spark's own Ivy) and remembered with their sizes below the user's cache; sessions then start
from these files without touching the network. The invariant: nothing is printed; what the JVM and Ivy say goes to `<work_dir>/spark.log`,
and when the session is stopped its JVM is gone, so that another one may be started in the same process.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from raydex.cluster.java import Java, find_java, user_cache
from raydex.ir.errors import ConfigError, StoreError
from raydex.ir.ids import digest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Sedona's shaded jar carries GraphFrames' classes; whoever has GraphFrames' own artifact names it instead
PACKAGES = ("org.apache.sedona:sedona-spark-shaded-4.0_2.13:1.8.0", "io.delta:delta-spark_2.13:4.0.0")
# the first compiler only: a session lives for seconds to minutes, and the second one would compile longer than it saves
_QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LOG_LINES, _LOG_CHARS = 4, 600


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """`packages` are Maven coordinates; `repositories` are asked before the public one; `ivy_dir` holds what was resolved.

    `settings` are Spark's own keys and win over ours.
    """

    packages: tuple[str, ...] = PACKAGES
    repositories: tuple[str, ...] = ()
    ivy_dir: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def ivy(self) -> Path:
        return (self.ivy_dir or user_cache() / "ivy").absolute()


def fetch_jars(settings: SparkSettings | None = None, *, log: Path | None = None) -> tuple[Path, ...]:
    """The jars of `settings.packages` with all that they need: from the list of an earlier call, else resolved (network, ~10 s).

    Raises StoreError with the end of Ivy's own words when they cannot be resolved.
    """
    settings = settings or SparkSettings()
    ivy = settings.ivy()
    listing = _listing(settings)
    known = _read_listing(listing)
    if known is not None:
        return known
    ivy.mkdir(parents=True, exist_ok=True)
    log = log or ivy / "resolve.log"
    conf = {"spark.jars.packages": ",".join(settings.packages), "spark.jars.ivy": str(ivy)}
    if settings.repositories:
        conf["spark.jars.repositories"] = ",".join(settings.repositories)
    with _gateway(conf, find_java(), log) as gateway:
        named = gateway.jvm.System.getProperty("spark.jars") or ""
    jars = tuple(sorted(Path(name.removeprefix("file://").removeprefix("file:")) for name in named.split(",") if name))
    missing = [str(jar) for jar in jars if not jar.is_file()]
    if not jars or missing:
        raise StoreError(f"Ivy named jars that are not there: {missing[:3]}", place=str(ivy), remedy=_fetch_remedy(settings))
    temporary = listing.with_suffix(f".{os.getpid()}")
    temporary.write_bytes(orjson.dumps({jar.name: jar.stat().st_size for jar in jars}))
    temporary.replace(listing)
    return jars


def jars_ready(settings: SparkSettings | None = None) -> bool:
    """Whether sessions start without the network."""
    settings = settings or SparkSettings()
    return _read_listing(_listing(settings)) is not None


def _listing(settings: SparkSettings) -> Path:
    return settings.ivy() / f"resolved-{digest(*settings.packages)[:16]}.json"


def _read_listing(listing: Path) -> tuple[Path, ...] | None:
    """The jars of an earlier resolution; None when there was none or when a jar is gone or cut."""
    if not listing.is_file():
        return None
    try:
        sizes = orjson.loads(listing.read_bytes())
    except orjson.JSONDecodeError:
        return None
    jars = {listing.parent / "jars" / name: size for name, size in sizes.items()}
    if any(not jar.is_file() or jar.stat().st_size != size for jar, size in jars.items()):
        return None
    return tuple(sorted(jars))


def _fetch_remedy(settings: SparkSettings) -> str:
    return (
        f"Check that {', '.join(settings.packages)} can be had from the network or from spark.repositories, "
        f"or copy a resolved folder to {settings.ivy()}"
    )


def session_settings(work_dir: Path, cores: int, memory: str, jars: tuple[Path, ...]) -> dict[str, str]:
    """Spark's keys for a local session whose inputs are small beside its start: as many partitions as cores, no UI, no Hive, UTC."""
    return {
        "spark.master": f"local[{cores}]",
        "spark.app.name": "raydex",
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": _QUICK_JVM,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in jars),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(work_dir / "local"),
        "spark.sql.warehouse.dir": str(work_dir / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.default.parallelism": str(cores),
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.coalescePartitions.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        # flipped bits must fail, not become values: our files carry page checksums
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def spark_session(work_dir: Path, cores: int | None = None, memory: str = "2g", settings: SparkSettings | None = None) -> SparkSession:
    """A running local session with GraphFrames and Delta, its scratch files, checkpoints and log below `work_dir`; ~5 s.

    `cores` defaults to those that this process may use. Stop it with `stop_session`. Raises StoreError when one already runs in this
    process, when there is no Java, or when the JVM does not start.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None or SparkContext._gateway is not None:  # type: ignore[attr-defined]
        raise StoreError("a Spark session already runs in this process", place="spark", remedy="Stop it with stop_session")
    settings = settings or SparkSettings()
    interrupt = signal.getsignal(signal.SIGINT)
    if cores is not None and cores < 1:
        raise ConfigError(f"spark.cores is {cores}", remedy="Give 1 or more")
    work_dir = work_dir.absolute()
    work_dir.mkdir(parents=True, exist_ok=True)
    log = work_dir / "spark.log"
    jars = fetch_jars(settings, log=log)
    names = session_settings(work_dir, cores or len(os.sched_getaffinity(0)), memory, jars)
    if not any("delta" in package for package in settings.packages):
        names = {key: value for key, value in names.items() if not key.endswith(("extensions", "spark_catalog"))}
    names.update(settings.settings)
    with _environment({"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}):
        gateway = _start_gateway(names, find_java(), log)
        try:
            context = SparkContext(conf=SparkConf(loadDefaults=False).setAll(list(names.items())), gateway=gateway)
        except Exception:
            _stop_gateway(gateway)
            SparkContext._gateway = SparkContext._jvm = None  # type: ignore[attr-defined]
            raise
        finally:
            # pyspark puts its own handler there, which would outlive the session
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, interrupt)
    context.setLogLevel("WARN")
    # pyspark prints every error that it raises a second time, as JSON
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    context.setCheckpointDir(str(work_dir / "checkpoints"))
    return SparkSession(context)


def stop_session(spark: SparkSession) -> None:
    """Stops the session and its JVM, and waits until that is gone."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = spark.sparkContext._gateway
    try:
        spark.stop()
    except (Py4JError, OSError):
        # the JVM has died: what is left to stop is on this side
        SparkSession._instantiatedSession = SparkSession._activeSession = None  # type: ignore[attr-defined]
    finally:
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None  # type: ignore[attr-defined]
        _stop_gateway(gateway)


_kept: SparkSession | None = None


@contextmanager
def keep_spark(
    work_dir: Path, cores: int | None = None, memory: str = "2g", settings: SparkSettings | None = None
) -> Iterator[SparkSession]:
    """A session that every `open_spark` of this process uses, whatever it asks for, until the block ends.

    For a process that projects several times: a JVM that has compiled its classes is several times as fast as a new one.
    """
    global _kept
    _kept = spark_session(work_dir, cores, memory, settings)
    try:
        yield _kept
    finally:
        session, _kept = _kept, None
        stop_session(session)


def keeps_spark() -> bool:
    """Whether this process keeps a session that `open_spark` would use."""
    return _kept is not None


@contextmanager
def open_spark(
    work_dir: Path, cores: int | None = None, memory: str = "2g", settings: SparkSettings | None = None
) -> Iterator[SparkSession]:
    """`spark_session` for the length of a `with` block, or the kept one. What fails in Spark leaves the block as StoreError that names the
    log."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    spark = _kept or spark_session(work_dir, cores, memory, settings)
    try:
        yield spark
    except (PySparkException, Py4JError, ConnectionError) as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:_LOG_CHARS]
        log = work_dir.absolute() / "spark.log"
        raise StoreError(f"Spark failed: {reason}", place=str(log), remedy="Read the log; with more memory set spark.memory") from error
    finally:
        if spark is not _kept:
            stop_session(spark)


@contextmanager
def _gateway(conf: Mapping[str, str], java: Java, log: Path) -> Iterator[Any]:
    gateway = _start_gateway(conf, java, log)
    try:
        yield gateway
    finally:
        _stop_gateway(gateway)


def _start_gateway(conf: Mapping[str, str], java: Java, log: Path) -> Any:
    """A JVM with Spark's classes, reached by py4j; both of its output streams go to the end of `log`."""
    import pyspark
    from pyspark import SparkConf
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    environment = {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LAUNCHER_OPTS": _QUICK_JVM,
    }
    options = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    with open(log, "ab") as sink, _environment(environment):
        start = sink.tell()
        try:
            return launch_gateway(conf=options, popen_kwargs={"stdout": sink, "stderr": sink})
        except PySparkRuntimeError as error:
            message = f"Spark's JVM did not start (Java {java.version} in {java.home}): {_reason(log, start)}"
            packages = conf.get("spark.jars.packages")
            remedy = (
                "" if packages is None else _fetch_remedy(SparkSettings(tuple(packages.split(",")), ivy_dir=Path(conf["spark.jars.ivy"])))
            )
            raise StoreError(message, place=str(log), remedy=remedy) from error


def _stop_gateway(gateway: Any) -> None:
    gateway.shutdown()
    process = gateway.proc
    process.stdin.close()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _reason(log: Path, start: int) -> str:
    """What the JVM wrote about its failure: the lines that name a problem, else the last ones."""
    with open(log, "rb") as source:
        source.seek(start)
        lines = [line.strip() for line in source.read().decode("utf-8", "replace").splitlines() if line.strip()]
    telling = [line for line in lines if any(word in line for word in ("not found", "failed", "Exception", "rror:", "UNRESOLVED"))]
    return " | ".join((telling or lines)[-_LOG_LINES:])[:_LOG_CHARS] or "it said nothing"


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """The environment with `values` for the length of a `with` block: pyspark takes these from nowhere else."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
