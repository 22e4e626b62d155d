"""Servers of models that the configuration names (OpenAI-compatible) → whether they answer, and offer the model.

`GET {address}/models` with a short timeout and one try: it costs the server nothing. The invariant: a server that keeps no such list, or
answers to names that it does not list (llama.cpp does), is not held for broken; only a request to the model itself can tell.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import orjson

from raydex.configs.settings import Settings
from raydex.kernels import surya
from raydex.kernels.endpoint import check_url, read_key

SECONDS = 5.0
NAMES_SHOWN = 5
NO_LIST = frozenset({404, 405, 501})
NO_ENTRY = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class ModelServer:
    """`named_by`: the keys, or variables of the environment, that hold its address, the model's name and the API key."""

    what: str
    address: str
    model: str
    api_key: str
    named_by: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server says: `fault` with `remedy` where it is of no use now, else the names that it lists (None: it keeps no list)."""

    fault: str = ""
    remedy: str = ""
    names: tuple[str, ...] | None = None

    def offers(self, model: str) -> bool:
        return self.names is not None and model in self.names


def model_servers(settings: Settings) -> Iterator[ModelServer]:
    """Those of the configuration. Raises ConfigError for an address or a key that is none."""
    for section, chosen in (("embed", settings.embed), ("caption", settings.caption)):
        if chosen.base_url and chosen.model:
            check_url(chosen.base_url, section)
            key = read_key(chosen.api_key_env, section) if chosen.api_key_env else ""
            keys = (f"{section}.base_url", f"{section}.model", f"{section}.api_key_env")
            yield ModelServer(section, chosen.base_url, chosen.model, key, keys)
    if "surya" in (settings.ocr.engine, settings.ocr.layout):
        model = os.environ.get(surya.MODEL) or surya.DEFAULT_MODEL
        address, key = os.environ.get(surya.URL, ""), os.environ.get(surya.KEY, "")
        yield ModelServer("ocr", address, model, key, (surya.URL, surya.MODEL, surya.KEY))


def ask(server: ModelServer, seconds: float = SECONDS) -> Answer:
    """One request. The key never enters the answer."""
    address_key, _, key_key = server.named_by
    url = f"{server.address.rstrip('/')}/models"
    headers = {"authorization": f"Bearer {server.api_key}"} if server.api_key else {}
    try:
        response = httpx.get(url, headers=headers, timeout=seconds, follow_redirects=False)
    except httpx.HTTPError as error:
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return Answer(f"the server does not answer ({url}: {reason})", f"Start it, or correct {address_key}")
    if response.status_code in NO_LIST:
        return Answer()
    if response.status_code in NO_ENTRY:
        return Answer(f"the server refuses the key ({url}: HTTP {response.status_code})", f"Check {key_key}")
    if response.status_code != 200:
        return Answer(f"the server answers with HTTP {response.status_code} ({url})", f"Check the server and {address_key}")
    try:
        return Answer(names=tuple(str(entry["id"]) for entry in orjson.loads(response.content)["data"]))
    except (ValueError, KeyError, TypeError):
        return Answer(f"what answers is no server of models ({url} gives no list of them)", f"Check {address_key}: it ends in /v1, mostly")


def not_offered(server: ModelServer, answer: Answer) -> tuple[str, str]:
    """(detail, remedy) for a model that the server's list lacks."""
    names = answer.names or ()
    shown = ", ".join(names[:NAMES_SHOWN]) + (f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else "")
    model_key = server.named_by[1]
    detail = f"{server.address} answers, and does not offer {server.model}; it offers {shown or 'no model'}"
    return detail, f"Set {model_key} to one that it offers" if names else "Load the model into the server"


def notes(settings: Settings) -> Iterator[str]:
    """What is worth a line before a run begins: a server that is down now costs its records a second run."""
    for server in model_servers(settings):
        answer = ask(server)
        if answer.fault:
            again = "what it does not answer for is tried again by the next run"
            yield f"Note on {server.named_by[0]}: {answer.fault}. {answer.remedy}; {again}."
        elif answer.names is not None and not answer.offers(server.model):
            detail, remedy = not_offered(server, answer)
            yield f"Note on {server.named_by[1]}: {detail}. {remedy}."
