"""YAML → DocumentIR by libyaml's events: places, never values. No tag is obeyed and no alias is followed, so none can cost anything.

The invariant: scalars stand in the blocks as they are written (1.10, NO, 0755), equal keys side by side; a mapping that merges another by
`<<` has the merged scalars in its block's metadata. With several documents the pointers begin with the document's number, from 0.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import yaml

from raydex.ir.errors import LimitError
from raydex.ir.parsed import ParsedFile
from raydex.kernels.datum import DatumDrafts, Span
from raydex.kernels.decode import decode
from raydex.kernels.drafts import Draft, check_count, finish
from raydex.kernels.request import ParseRequest

PARSER_VERSION = "1"
MAX_MESSAGES = 20
_MERGE = "<<"
_CORE_TAGS = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(
    ["null", "bool", "int", "float", "binary", "timestamp", "omap", "pairs", "set", "str", "seq", "map", "merge", "value"]
)
Scalars = list[tuple[str, str]]


def parse_yaml(request: ParseRequest) -> ParsedFile:
    """Raises InputError: unsupported_media_type, too_deep, too_many_blocks."""
    decoded = decode(request.data)
    reader = YamlReader(decoded.text, request)
    documents, error = reader.read()
    out = DatumDrafts(decoded.text, "yaml")
    for number, span in enumerate(documents):
        if span is not None:
            several = len(documents) > 1
            out.add(span, f"/{number}" if several else "", [f"[{number}]"] if several else [])
            check_count(out.drafts, request)
    warnings = list(reader.warnings)
    if error:
        # a template, or a file that ends too early: its text is kept as it stands
        rest = decoded.text[error[0] :]
        start = error[0] + len(rest) - len(rest.lstrip())
        if rest.strip():
            about = {"language": "yaml", "broken": True}
            out.drafts.append(Draft("code", start, start + len(rest.strip()), rest.strip(), about, place={"pointer": ""}, section=[]))
        warnings.append("broken_values")
    parsed = finish(request, decoded, out.drafts, parser="yaml", parser_version=PARSER_VERSION, warnings=tuple(warnings))
    for name, message in reader.messages[:MAX_MESSAGES]:
        parsed.add_event("parse", "warning", name, message)
    if error:
        parsed.add_event("parse", "error", "broken_values", error[1])
    return parsed


class YamlReader:
    """Events of one text → a span a document. Anchors keep the scalars of their mappings, for merges."""

    def __init__(self, text: str, request: ParseRequest) -> None:
        self.text = text
        self.depth = request.limits.depth
        self.warnings: dict[str, None] = {}
        self.messages: list[tuple[str, str]] = []  # warning, and where it was met
        self._anchors: dict[str, Scalars] = {}
        self._named: set[str] = set()
        self._last = 0

    def read(self) -> tuple[list[Span | None], tuple[int, str] | None]:
        """(documents, None or where reading stopped and why). An empty document is None."""
        documents: list[Span | None] = []
        events = yaml.parse(self.text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        try:
            for event in events:
                if isinstance(event, yaml.DocumentStartEvent):
                    self._anchors.clear()
                    self._named.clear()
                    documents.append(self._node(next(events), events, 0))
                    self._last = _end(event) if documents[-1] is None else documents[-1].end
        except (yaml.YAMLError, RecursionError) as error:
            if isinstance(error, RecursionError):
                raise LimitError(f"nested deeper than limits.depth ({self.depth})", reject_class="too_deep") from error
            if "nesting depth" in str(error):  # libyaml's own limit, met while it looks ahead
                raise LimitError(f"nested deeper than limits.depth ({self.depth})", reject_class="too_deep") from error
            mark = getattr(error, "problem_mark", None)
            line = f"line {mark.line + 1}: " if mark else ""
            return documents, (self._last, line + str(getattr(error, "problem", None) or error)[:200])
        return documents, None

    def _node(self, event: Any, events: Any, level: int) -> Span | None:
        if level > self.depth:
            raise LimitError(f"nested deeper than limits.depth ({self.depth})", reject_class="too_deep")
        self._tag(event)
        start = _start(event)
        if event.anchor and not isinstance(event, yaml.AliasEvent):
            self._named.add(event.anchor)
        if isinstance(event, yaml.ScalarEvent):
            return Span(start, _end(event)) if event.value or _end(event) > start else None
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._named:
                self.warnings["unknown_alias"] = None
                self.messages.append(("unknown_alias", f"line {_line(event)}: nothing is called {str(event.anchor)[:80]!r}"))
            return Span(start, _end(event))
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(event, events, level)
        return self._mapping(event, events, level)

    def _sequence(self, opening: Any, events: Any, level: int) -> Span:
        span = Span(_start(opening), 0, [], is_list=True)
        assert span.children is not None
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            value = self._node(event, events, level + 1) or Span(_start(event), _end(event))
            span.children.append((str(len(span.children)), value.start, value))
        span.end = max(_end(event) if self._is_flow(event) else 0, span.children[-1][2].end if span.children else span.start)
        return span

    def _mapping(self, opening: Any, events: Any, level: int) -> Span:
        span = Span(_start(opening), 0, [])
        assert span.children is not None
        scalars: Scalars = []
        merged: Scalars = []
        names: Counter[str] = Counter()
        while not isinstance(key := next(events), yaml.MappingEndEvent):
            name = key.value if isinstance(key, yaml.ScalarEvent) else ""
            at = _start(key)
            if not isinstance(key, yaml.ScalarEvent):
                held = self._node(key, events, level + 1)
                name = self.text[at : held.end if held else at][:200]
            event = next(events)
            value = self._node(event, events, level + 1) or Span(_start(event), _end(event))
            span.children.append((name, at, value))
            if isinstance(event, yaml.ScalarEvent):
                scalars.append((name, self.text[value.start : value.end]))
            if name == _MERGE and isinstance(event, yaml.AliasEvent):
                merged += self._anchors.get(event.anchor or "", [])
            elif name != _MERGE:
                names[name] += 1
        for name, count in names.items():
            if count > 1:
                self.warnings["duplicate_keys"] = None
                self.messages.append(("duplicate_keys", f"line {_line(opening)}: key {name[:80]!r} stands {count} times in one mapping"))
        span.end = max(_end(key) if self._is_flow(key) else 0, span.children[-1][2].end if span.children else span.start)
        own = {name for name, _ in scalars}
        if merged:
            span.metadata["merged"] = {name: text for name, text in merged if name not in own}
        if opening.anchor:
            self._anchors[opening.anchor] = scalars + [pair for pair in merged if pair[0] not in own]
        return span

    def _is_flow(self, event: Any) -> bool:
        return bool(_end(event) > _start(event))

    def _tag(self, event: Any) -> None:
        tag = getattr(event, "tag", None)
        if tag and not (tag.startswith(_CORE_TAGS) and tag[len(_CORE_TAGS) :] in _PLAIN_TAGS) and tag != "!":
            self.warnings["tag_ignored"] = None
            self.messages.append(("tag_ignored", f"line {_line(event)}: the tag {tag[:80]} is not obeyed"))


def _start(event: Any) -> int:
    return int(event.start_mark.index)


def _end(event: Any) -> int:
    return int(event.end_mark.index)


def _line(event: Any) -> int:
    """From 1."""
    return int(event.start_mark.line) + 1
