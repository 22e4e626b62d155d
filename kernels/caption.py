"""What a model answered about an image → the caption that is kept.

The invariant: a caption has text; an answer without any is an InputError, never an empty caption.
"""

from __future__ import annotations

import re

from raydex.ir.errors import InputError
from raydex.kernels.decode import clean

_CONTROLS = re.compile(r"[\x01-\x08\x0b-\x1f\x7f-\x9f]+")


def read_caption(answer: str, reject_class: str) -> str:
    """The text without white space around it and without control characters. Raises InputError of the class: nothing is left."""
    text = _CONTROLS.sub(" ", clean(answer.replace("\r\n", "\n"))).strip()
    if not text.strip("\ufffd \n\t"):
        raise InputError("the model answered nothing", reject_class=reject_class, remedy="Try another caption.model or caption.prompt")
    return text
