"""The object store: content addressed, whole or absent, and nothing outside its root."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from s3_server import KEY, SECRET, s3_server

from raydex.cluster.files import write_file
from raydex.cluster.objects import ObjectStore
from raydex.ir.errors import ConfigError, StoreError
from raydex.ir.ids import content_hash


@pytest.fixture
def store(tmp_path) -> ObjectStore:
    return ObjectStore(tmp_path / "objects")


def files_under(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


@given(st.binary(max_size=3000))
def test_bytes_come_back(tmp_path_factory, data):
    store = ObjectStore(tmp_path_factory.getbasetemp() / "law")
    uri = store.put(data, content_hash(data))
    assert uri == "cas:" + content_hash(data)
    assert store.exists(uri)
    assert store.get(uri) == data


def test_a_second_put_writes_nothing(store, tmp_path):
    data = b"the same"
    store.put(data, content_hash(data))
    (path,) = files_under(tmp_path)
    before = path.stat()
    store.put(data, content_hash(data))
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert path.relative_to(tmp_path / "objects").parts[:3] == ("cas", content_hash(data)[:2], content_hash(data)[2:4])


def test_absent_damaged_and_torn_objects(store, tmp_path):
    data = b"0123456789"
    with pytest.raises(StoreError, match="no such object"):
        store.get("cas:" + content_hash(data))
    assert not store.exists("cas:" + content_hash(data))
    uri = store.put(data, content_hash(data))
    (path,) = files_under(tmp_path)
    path.write_bytes(b"0123456780")
    with pytest.raises(StoreError, match="other content") as caught:
        store.get(uri)
    assert str(path) in str(caught.value)
    path.write_bytes(data[:4])  # torn by a power cut: the next put mends it
    store.put(data, content_hash(data), durable=True)
    assert store.get(uri) == data
    assert files_under(tmp_path) == [path]


@pytest.mark.parametrize("wrong", ["", "abc", "../" * 20 + "x", "A" * 64, "0" * 63 + "\n"])
def test_only_content_hashes_name_content(store, wrong):
    with pytest.raises(ValueError, match="content hash"):
        store.put(b"x", wrong)
    with pytest.raises(ValueError, match="content hash"):
        store.get("cas:" + wrong)


def test_a_symbolic_link_does_not_lead_out(store, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "cas").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError, match="symbolic link"):
        store.put(b"x", content_hash(b"x"))
    assert files_under(tmp_path / "outside") == []


def test_it_travels_to_workers(store):
    data = b"x"
    store.put(data, content_hash(data))
    assert pickle.loads(pickle.dumps(store)).get("cas:" + content_hash(data)) == data


def test_unknown_schemes_are_configuration_errors():
    with pytest.raises(ConfigError, match="gopher"):
        ObjectStore("gopher://x/y")


def test_a_killed_writer_leaves_nothing_torn(tmp_path):
    code = """
import os, sys
from raydex.cluster.objects import ObjectStore
from raydex.ir.ids import content_hash
store = ObjectStore(sys.argv[1])
print("go", flush=True)
while True:
    data = os.urandom(3_000_000)
    store.put(data, content_hash(data))
"""
    root = tmp_path / "objects"
    for round in range(4):
        process = subprocess.Popen([sys.executable, "-c", code, str(root)], stdout=subprocess.PIPE)
        assert process.stdout is not None and process.stdout.readline() == b"go\n"
        deadline = time.monotonic() + 30
        while len(files_under(root)) < 2 + 2 * round and time.monotonic() < deadline and process.poll() is None:
            pass
        process.send_signal(signal.SIGKILL)
        process.communicate()
    kept = files_under(root / "cas")
    assert len(kept) > 2
    assert all(content_hash(path.read_bytes()) == path.name for path in kept)


def test_a_full_disk_is_a_capacity_error(tmp_path):
    code = """
import resource, sys
from raydex.cluster.objects import ObjectStore
from raydex.ir.errors import CapacityError
from raydex.ir.ids import content_hash
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
store = ObjectStore(sys.argv[1])
small, large = b"s" * 5000, b"l" * 20_000
store.put(small, content_hash(small))
try:
    store.put(large, content_hash(large))
except CapacityError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert not store.exists("cas:" + content_hash(large))
store.put(large, content_hash(large))
assert store.get("cas:" + content_hash(large)) == large
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "o")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "disk is full" in done.stdout
    assert len(files_under(tmp_path)) == 2


def test_without_unnamed_files_the_named_way_holds(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "O_TMPFILE")
    path = tmp_path / "a" / "b"
    write_file(path, b"one")
    write_file(path, b"two")
    assert path.read_bytes() == b"two"
    with pytest.raises(FileExistsError):
        write_file(path, b"three", replace=False)
    write_file(tmp_path / "a" / "c", b"four", replace=False)
    assert [file.name for file in files_under(tmp_path)] == ["b", "c"]
    assert path.read_bytes() == b"two"


def test_the_unnamed_way_refuses_too(tmp_path):
    write_file(tmp_path / "b", b"two", replace=False)
    with pytest.raises(FileExistsError):
        write_file(tmp_path / "b", b"three", replace=False)
    assert [file.name for file in files_under(tmp_path)] == ["b"]


@pytest.mark.slow
def test_a_bucket():
    with s3_server() as url:
        options = {"endpoint_url": url, "key": KEY, "secret": SECRET, "use_listings_cache": False}
        store = ObjectStore("s3://bucket/prefix", **options)
        store.files.disk.mkdir("bucket")
        data = b"in a bucket"
        uri = store.put(data, content_hash(data))
        assert pickle.loads(pickle.dumps(store)).get(uri) == data
        assert store.exists(uri) and not store.exists("cas:" + content_hash(b"other"))
        store.files.disk.pipe_file(store.files.place(f"cas/{uri[4:6]}/{uri[6:8]}/{uri[4:]}"), b"IN A BUCKET")
        with pytest.raises(StoreError, match="other content"):
            store.get(uri)
        with pytest.raises(StoreError, match="no such object"):
            store.get("cas:" + content_hash(b"other"))
    with pytest.raises(StoreError, match="object store failed"):
        ObjectStore("s3://bucket/prefix", **options, config_kwargs={"retries": {"max_attempts": 0}, "connect_timeout": 1}).get(uri)
