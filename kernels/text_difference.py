"""Two readings of one file → how far they agree, in figures alone: what an audit may keep, since no text of the document is in it.

Similarity is Dice's coefficient over words, each as often as it stands; the order does not count. Linear in the texts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


@dataclass(frozen=True, slots=True)
class Difference:
    """Blocks and characters of ours and theirs; `similarity` 0 to 1, and 1 where both are empty."""

    blocks: int
    other_blocks: int
    characters: int
    other_characters: int
    similarity: float

    def message(self) -> str:
        return " ".join(f"{name}={value}" for name, value in asdict(self).items())


def compare_texts(ours: Sequence[str], theirs: Sequence[str]) -> Difference:
    one, other = _words(ours), _words(theirs)
    total = one.total() + other.total()
    similarity = round(2 * (one & other).total() / total, 4) if total else 1.0
    return Difference(len(ours), len(theirs), sum(map(len, ours)), sum(map(len, theirs)), similarity)


def _words(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in _WORD.findall(text.lower()))
