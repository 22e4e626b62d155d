"""Candidates of one reference → one for each thing that may be meant: a file writes down every cut and every path that a name may have."""

from __future__ import annotations

from collections.abc import Iterable

from raydex.kernels.importable import ALIASES


def distinct_meanings(candidates: Iterable[str]) -> list[str]:
    """One candidate for each thing that may be meant, sorted. "a.b:", "a:b" and so on are one thing cut at several places: the cut with the
    shortest module is kept, since what it names may also be a module further down."""
    shortest: dict[str, str] = {}
    for candidate in candidates:
        whole = candidate.replace(":", ".").rstrip(".")
        known = shortest.get(whole)
        if known is None or candidate.find(":") < known.find(":"):
            shortest[whole] = candidate
    return sorted(shortest.values())


def distinct_paths(candidates: Iterable[str]) -> list[str]:
    """Like `distinct_meanings` for paths. A relative import is given as "a/b:x" and "a/b/index:x", one thing.

    A name without such a twin is a package from elsewhere and must not meet a file of the repository that happens to be called so: it
    gets a name that no file has.
    """
    given = sorted(set(candidates))
    shorter = {candidate: candidate.replace("/index:", ":", 1) for candidate in given if "/index:" in candidate}
    twins = set(shorter.values())
    kept: list[str] = []
    for candidate in given:
        name = candidate.partition(":")[0]
        if shorter.get(candidate) in given:
            continue
        relative = ":" not in candidate or candidate in twins or candidate in shorter or name == "index"
        kept.append(candidate if relative or name.startswith(ALIASES) else f"//{candidate}")
    return kept
