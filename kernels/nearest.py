"""Vectors → the k nearest by exact search: what search falls back to while another process owns the vector store (contracts 36).

The invariant: the hits are those of a flat cosine index over the same unit vectors, in the order (score falling, id rising), whatever the
order and the size of the parts in which the vectors come: scores of the last candidates are computed again row by row in float64, because a
matrix product rounds differently for every shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
BLOCK_ROWS = 65_536
# above the rounding of a float32 product of unit vectors at any usual dimension
ROUNDING = 1e-4


class Nearest(NamedTuple):
    """A hit: `score` is the cosine of unit vectors, in -1 to 1."""

    chunk_id: str
    score: float


def exact_search(vectors: Vectors, ids: Sequence[str], query: Vectors, k: int) -> list[Nearest]:
    """The k nearest of `vectors` (n, d; unit length) to `query` (d). Raises ValueError when the shapes do not fit."""
    return exact_search_parts([(vectors, ids)], query, k)


def exact_search_parts(parts: Iterable[tuple[Vectors, Sequence[str]]], query: Vectors, k: int) -> list[Nearest]:
    """`exact_search` over vectors that come in parts (n_i, d): memory is bounded by the largest part and k."""
    wanted = np.asarray(query, np.float32).reshape(-1)
    best: list[tuple[float, str]] = []
    for vectors, ids in parts:
        if len(ids) != len(vectors):
            raise ValueError(f"{len(vectors)} vectors have {len(ids)} ids")
        if len(vectors) and vectors.shape[1:] != wanted.shape:
            raise ValueError(f"vectors of shape {vectors.shape[1:]} do not fit a query of shape {wanted.shape}")
        for start in range(0, len(vectors), BLOCK_ROWS):
            block = vectors[start : start + BLOCK_ROWS]
            near = _candidates(block @ wanted, k)
            scores = np.einsum("ij,j->i", block[near].astype(np.float64), wanted.astype(np.float64))
            best.extend((-score, ids[start + at]) for score, at in zip(scores.tolist(), near.tolist()))
            best.sort()
            del best[k:]
    return [Nearest(chunk_id, -score) for score, chunk_id in best]


def _candidates(scores: Vectors, k: int) -> npt.NDArray[np.intp]:
    """Positions of all scores that may be among the k best: what rounding cannot tell from the k-th best stays in."""
    if k <= 0:
        return np.empty(0, np.intp)
    if len(scores) <= k:
        return np.arange(len(scores), dtype=np.intp)
    border = np.partition(scores, len(scores) - k)[len(scores) - k]
    return np.flatnonzero(scores >= border - ROUNDING)
