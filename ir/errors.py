"""The error tree. Every error says what went wrong, where, and what to do about it.

    RaydexError
    ├── InputError        the input itself is at fault: the record becomes a reject
    │   └── LimitError    a size, depth, count or time limit was met
    ├── CapacityError     a resource ran out: retried with less, then a reject
    ├── StoreError        an engine, table or store failed (exit 3)
    │   └── LockError     another run holds the lake (exit 3)
    └── ConfigError       configuration or usage (exit 2)

Reject classes are data (`REJECT_CLASSES`): a class is terminal for (content hash, stage fingerprint) unless it is retryable
(contracts 19).
"""

from __future__ import annotations

from dataclasses import dataclass

AGAIN = "What was committed is kept: run the same command again"


class RaydexError(Exception):
    """Base of all errors that raydex raises on purpose.

    `place` is the file, row or key at fault; `remedy` one sentence that tells the user what to do.
    """

    exit_code = 3

    def __init__(self, message: str, *, place: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.remedy = remedy

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        return f"{text}. {self.remedy}" if self.remedy else text

    def __reduce__(self) -> tuple[object, ...]:  # type: ignore[override]
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(cls: type[RaydexError], args: tuple[object, ...], state: dict[str, object]) -> RaydexError:
    error: RaydexError = cls.__new__(cls)
    Exception.__init__(error, *args)
    error.__dict__.update(state)
    return error


class InputError(RaydexError):
    """The input is at fault. `reject_class` is a key of `REJECT_CLASSES`."""

    def __init__(self, message: str, *, reject_class: str = "invalid_input", place: str = "", remedy: str = "") -> None:
        if reject_class not in REJECT_CLASSES:
            raise ValueError(f"unknown reject class {reject_class!r}")
        super().__init__(message, place=place, remedy=remedy)
        self.reject_class = reject_class


class LimitError(InputError):
    """A limit was met; the message names the limit, its value and the configuration key."""


class CapacityError(RaydexError):
    """Memory, accelerator memory or disk ran out."""


class StoreError(RaydexError):
    """A table, store or engine failed."""


class LockError(StoreError):
    """Another run holds the lake."""


class ConfigError(RaydexError):
    """The configuration or the command line is wrong."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class RejectClass:
    """Why a record was rejected. `retryable` ones run again on the next run, at most 5 attempts in all."""

    name: str
    retryable: bool
    comment: str


REJECT_CLASSES: dict[str, RejectClass] = {
    c.name: c
    for c in (
        RejectClass("unsupported_media_type", False, "no parser for this type of content"),
        RejectClass("invalid_input", False, "the content breaks its own format"),
        RejectClass("empty", False, "the file has no bytes"),
        RejectClass("encrypted", False, "a password is needed"),
        RejectClass("no_pages", False, "a paged document without pages"),
        RejectClass("syntax", False, "the source code does not parse"),
        RejectClass("grammar_unavailable", False, "the grammar of this language is not installed"),
        RejectClass("too_large", False, "more bytes than limits.input_bytes"),
        RejectClass("too_many_pages", False, "more pages than limits.pages"),
        RejectClass("too_many_blocks", False, "more blocks than limits.blocks"),
        RejectClass("too_many_records", False, "a streamed file of more records than limits.records"),
        RejectClass("too_many_symbols", False, "more symbols than limits.symbols"),
        RejectClass("too_deep", False, "nested deeper than limits.depth"),
        RejectClass("text_too_long", False, "more text than limits.text_bytes"),
        RejectClass("bomb", False, "expands out of proportion"),
        RejectClass("crash", False, "the parser process died, twice"),
        RejectClass("timeout", False, "the parser met its time limit, twice"),
        RejectClass("memory", False, "the parser met its memory limit, twice"),
        RejectClass("refused", False, "a link or a name that a listing does not follow"),
        RejectClass("unreadable", True, "the file could not be opened or read"),
        RejectClass("changed_while_read", True, "the content changed between listing and parsing"),
        RejectClass("store", True, "a store did not take the row"),
        RejectClass("endpoint", True, "a remote endpoint failed"),
        RejectClass("model_load", True, "a model could not be loaded"),
        RejectClass("engine", True, "a model's engine failed, or gave no answer"),
        RejectClass("internal", True, "a defect of raydex: please report it"),
    )
}
