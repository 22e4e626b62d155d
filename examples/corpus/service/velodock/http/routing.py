"""A table of routes, filled by decorators."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Handler = Callable[..., Any]


class Router:
    """Routes by method and path template: `/stations/<station>` gives the handler an argument `station`."""

    def __init__(self) -> None:
        self.routes: list[tuple[str, re.Pattern[str], Handler]] = []

    def route(self, template: str, methods: tuple[str, ...] = ("GET",)) -> Callable[[Handler], Handler]:
        pattern = compile_template(template)

        def register(handler: Handler) -> Handler:
            for method in methods:
                self.routes.append((method, pattern, handler))
            return handler

        return register

    def find(self, method: str, path: str) -> tuple[Handler, dict[str, str]] | None:
        for wanted, pattern, handler in self.routes:
            match = pattern.fullmatch(path)
            if wanted == method and match:
                return handler, match.groupdict()
        return None


def compile_template(template: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"<(\w+)>", r"(?P<\1>[^/]+)", template))


app = Router()
