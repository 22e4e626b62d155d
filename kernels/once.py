"""Answers to questions that ask each other: each is worked out once, and a question that leads back to itself ends.

The invariant: an answer is a function of what it is worked out from, never of what was asked before. So what a circle cut short is
remembered only while the outermost question is open, and that question's own answer only for when it is outermost again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Answers:
    """Answers by key; `longest` is the most questions that may be open at once."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self._whole: dict[Any, Any] = {}
        self._outermost: dict[Any, Any] = {}
        self._cut_short: dict[Any, Any] = {}
        self._open: set[Any] = set()
        self._cut = False

    def ask(self, key: Any, compute: Callable[[], Any]) -> Any:
        """The answer of `compute()`; None when `key` is open already, or too many are."""
        known = self._whole.get(key)
        if known is None and not self._open:
            known = self._outermost.get(key)
        if known is not None:
            return known
        partial = self._cut_short.get(key)
        if partial is not None or key in self._open or len(self._open) >= self.longest:
            self._cut = True
            return partial
        before, self._cut = self._cut, False
        self._open.add(key)
        made = compute()
        self._open.discard(key)
        if not self._cut:
            self._whole[key] = made
        elif self._open:
            self._cut_short[key] = made
        else:
            self._outermost[key] = made
        if not self._open:
            self._cut_short.clear()
        self._cut = bool(self._open) and (self._cut or before)
        return made
