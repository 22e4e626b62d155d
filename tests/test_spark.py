"""The machine's Java and the local Spark session (cluster/java.py, cluster/spark.py)."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from raydex.cluster import java as java_module
from raydex.cluster.java import find_java, probe_java, system_certificates, user_cache, write_launcher, write_trust_store
from raydex.cluster.spark import SparkSettings, fetch_jars, jars_ready, open_spark, session_settings, spark_session
from raydex.ir.errors import ConfigError, StoreError


def fake_java(folder: Path, version: str) -> Path:
    """A `java` that says of itself what a JVM of that version says."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nprintf "    java.home = {folder}\\n    java.specification.version = {version}\\n" >&2\n')
    command.chmod(0o755)
    return command


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Neither JAVA_HOME nor a `java` on the PATH; returns a folder that is on the PATH."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_java_home_comes_first(no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "home", "21")
    (no_java / "java").symlink_to(fake_java(tmp_path / "other", "17"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    found = find_java()
    assert (found.home, found.version, found.packaged) == (tmp_path / "home", 21, False)


@pytest.mark.parametrize("old", ["1.8", "11", "16"])
def test_an_old_java_home_is_passed_over(old: str, no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "home", old)
    (no_java / "java").symlink_to(fake_java(tmp_path / "other", "17"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java().home == tmp_path / "other"


def test_a_java_home_that_is_not_there_is_passed_over(no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (no_java / "java").symlink_to(fake_java(tmp_path / "other", "17"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    assert find_java().version == 17


def test_without_any_java_the_error_names_what_was_seen(no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "home", "1.8")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(java_module, "packaged_java", lambda: None)
    with pytest.raises(StoreError, match=r"version 8.*PATH has none.*JAVA_HOME"):
        find_java()


def test_the_packaged_java_is_the_last_resort(no_java: Path, tmp_path: Path) -> None:
    found = find_java(tmp_path / "cache")
    assert found.packaged and found.version >= 17
    launched = probe_java(str(found.home / "bin" / "java"))
    assert launched is not None and launched[1] == found.version
    assert find_java(tmp_path / "cache") == found


def test_the_launcher_drops_one_flag_and_keeps_all_other_arguments(tmp_path: Path) -> None:
    echo = tmp_path / "it's a java"
    echo.write_text('#!/bin/sh\nfor a do printf "%s\\n" "$a"; done\n')
    echo.chmod(0o755)
    home = write_launcher(echo, tmp_path / "a cache")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", "$HOME", "*", "", "--add-modules=other"]
    done = subprocess.run([str(home / "bin" / "java"), *arguments], capture_output=True, text=True, check=True)
    said = done.stdout.split("\n")[:-1]
    assert said[-6:] == ["-Xmx1g", "-Dx=a b", "$HOME", "*", "", "--add-modules=other"]
    assert [a for a in said[:-6] if not a.startswith("-Djavax.net.ssl.trustStore")] == []
    assert stat.S_IMODE((home / "bin" / "java").stat().st_mode) == 0o755


def test_the_trust_store_is_read_by_the_packaged_java(tmp_path: Path) -> None:
    bundle = system_certificates()
    count = bundle.count(b"BEGIN CERTIFICATE")
    assert count > 0
    store = write_trust_store(bundle, tmp_path)
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    held = load_pkcs12(store.read_bytes(), None).additional_certs
    assert 0 < len(held) <= count
    assert write_trust_store(bundle, tmp_path) == store
    assert [p.name for p in tmp_path.iterdir()] == [store.name]


def test_a_certificate_that_cannot_be_read_is_left_out_and_none_is_an_error(tmp_path: Path) -> None:
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    first = system_certificates().split(b"-----END CERTIFICATE-----")[0] + b"-----END CERTIFICATE-----\n"
    assert write_trust_store(broken + first, tmp_path).is_file()
    with pytest.raises(StoreError, match="SSL_CERT_FILE"):
        write_trust_store(broken, tmp_path)


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("RAYDEX_CACHE", raising=False)
    assert user_cache() == tmp_path / "xdg" / "raydex"
    monkeypatch.setenv("RAYDEX_CACHE", str(tmp_path / "own"))
    assert user_cache() == tmp_path / "own"


def test_cores_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cores"):
        spark_session(tmp_path, cores=0)


def test_settings_know_the_cores(tmp_path: Path) -> None:
    settings = session_settings(tmp_path, 3, "1g", (Path("/j/a.jar"), Path("/j/b.jar")))
    assert settings["spark.master"] == "local[3]"
    assert settings["spark.sql.shuffle.partitions"] == "3"
    assert settings["spark.driver.extraClassPath"] == "/j/a.jar:/j/b.jar"
    assert settings["spark.sql.session.timeZone"] == "UTC"


def test_importing_the_seams_loads_no_engine() -> None:
    code = (
        "import sys, raydex.cluster.spark, raydex.jobs.project; print([m for m in ('pyspark', 'graphframes', 'ray') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_jars_that_were_cut_or_are_gone_are_resolved_again(tmp_path: Path) -> None:
    from raydex.cluster.spark import _listing

    settings = SparkSettings(packages=("org.example:none:1",), ivy_dir=tmp_path)
    (tmp_path / "jars").mkdir()
    jar = tmp_path / "jars" / "none-1.jar"
    jar.write_bytes(b"12345")
    assert not jars_ready(settings)
    _listing(settings).write_text('{"none-1.jar": 5}')
    assert jars_ready(settings) and fetch_jars(settings) == (jar,)
    jar.write_bytes(b"1234")
    assert not jars_ready(settings)
    jar.unlink()
    assert not jars_ready(settings)
    _listing(settings).write_text("{")
    assert not jars_ready(settings)


@pytest.mark.slow
def test_packages_that_cannot_be_had_are_one_error_with_a_remedy(tmp_path: Path) -> None:
    settings = SparkSettings(packages=("org.example:never-published:0.0.1",), repositories=("file:///nowhere",), ivy_dir=tmp_path / "ivy")
    with pytest.raises(StoreError, match="never-published") as failure:
        fetch_jars(settings)
    assert "network" in failure.value.remedy and not jars_ready(settings)


@pytest.mark.slow
def test_a_session_from_start_to_stop(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from graphframes import GraphFrame

    handler = signal.getsignal(signal.SIGINT)
    environment = dict(os.environ)
    with open_spark(tmp_path / "first work", cores=1, memory="1g") as spark:
        process = spark.sparkContext._gateway.proc
        vertices = spark.createDataFrame([("a",), ("b",), ("lonely",)], ["id"])
        edges = spark.createDataFrame([("a", "b")], ["src", "dst"])
        assert {tuple(r) for r in GraphFrame(vertices, edges).outDegrees.collect()} == {("a", 1)}
        table = str(tmp_path / "delta")
        vertices.write.format("delta").save(table)
        assert spark.read.format("delta").load(table).count() == 3
        assert spark.sql("select current_timezone()").first()[0] == "UTC"
        with pytest.raises(StoreError, match="already runs"):
            spark_session(tmp_path / "second")
    assert process.poll() is not None
    assert signal.getsignal(signal.SIGINT) is handler
    changed = {k for k in {*os.environ, *environment} if os.environ.get(k) != environment.get(k) and not k.startswith("SPARK_")}
    assert changed <= {"PYTEST_CURRENT_TEST"}
    printed = capfd.readouterr()
    assert printed.out == "" and printed.err == ""
    assert (tmp_path / "first work" / "spark.log").stat().st_size > 0


@pytest.mark.slow
def test_what_fails_in_spark_and_a_jvm_that_dies_are_store_errors(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(StoreError, match=r"spark\.log.*no_such_table"), open_spark(tmp_path, cores=1, memory="1g") as spark:
        spark.sql("select * from no_such_table")
    with pytest.raises(StoreError, match="Spark failed"), open_spark(tmp_path, cores=1, memory="1g") as spark:
        spark.sparkContext._gateway.proc.kill()
        spark.sparkContext._gateway.proc.wait()
        spark.range(3).count()
    with open_spark(tmp_path, cores=1, memory="1g") as spark:
        assert spark.range(3).count() == 3
    printed = capfd.readouterr()
    assert printed.out == "" and printed.err == ""
