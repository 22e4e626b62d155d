"""Vectors that the lake holds already, by text hash: equal text is embedded once a lake (contracts 16).

The driver writes an index (hash → data file and row) once a run; workers map it and read the few vectors that they hit.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from raydex.cluster.delta import list_data_files, read_data_file

CACHED_FILES = 8


def write_known(tables_root: str, fingerprint: str, path: Path) -> int:
    """Index of all stored vectors of one model. Returns their number; 0 writes nothing."""
    hashes: list[np.ndarray] = []
    places: list[np.ndarray] = []
    files: list[str] = []
    for item in list_data_files(tables_root, "embeddings"):
        table = read_data_file(tables_root, "embeddings", item.path, columns=["text_hash", "fingerprint"])
        rows = np.flatnonzero(pc.fill_null(pc.equal(table.column("fingerprint"), fingerprint), False).to_numpy())
        if not len(rows):
            continue
        keys = table.column("text_hash").take(rows).to_pylist()
        hashes.append(np.array([int(key[:16], 16) for key in keys], np.uint64))
        places.append(np.stack([np.full(len(rows), len(files)), rows], axis=1).astype(np.int64))
        files.append(item.path)
    if not files:
        return 0
    keys, spots = np.concatenate(hashes), np.concatenate(places)
    order = np.argsort(keys, kind="stable")
    np.savez(path, keys=keys[order], places=spots[order], files=np.array(files))
    return len(keys)


class KnownVectors:
    """Looks vectors up by text hash; the full hash is checked against the row."""

    def __init__(self, tables_root: str, path: Path) -> None:
        self.tables_root = tables_root
        with np.load(path) as data:
            self.keys, self.places, self.files = data["keys"], data["places"], data["files"]
        self.cache: dict[int, tuple[list[str], np.ndarray]] = {}

    def find(self, text_hash: str) -> np.ndarray | None:
        """float32 (dim,) or None."""
        key = np.uint64(int(text_hash[:16], 16))
        at = int(np.searchsorted(self.keys, key))
        while at < len(self.keys) and self.keys[at] == key:
            file, row = (int(v) for v in self.places[at])
            hashes, vectors = self._file(file)
            if hashes[row] == text_hash:
                return vectors[row]  # type: ignore[no-any-return]
            at += 1
        return None

    def _file(self, file: int) -> tuple[list[str], np.ndarray]:
        if file not in self.cache:
            if len(self.cache) >= CACHED_FILES:
                self.cache.pop(next(iter(self.cache)))
            table = read_data_file(self.tables_root, "embeddings", str(self.files[file]), columns=["text_hash", "vector"])
            vectors = table.column("vector").combine_chunks()
            flat = vectors.flatten().to_numpy().reshape(table.num_rows, -1)
            self.cache[file] = (table.column("text_hash").to_pylist(), flat)
        return self.cache[file]
