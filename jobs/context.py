"""What every stage of one run knows: the lake, the settings and the fingerprints. Plain data, so that it travels to any worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import orjson

from raydex.configs.settings import Settings
from raydex.ir.ids import digest
from raydex.ir.rows import Stamp
from raydex.kernels.chunk import CHUNK_VERSION
from raydex.kernels.embed import embedding_identity
from raydex.kernels.parse import PARSER_VERSION
from raydex.kernels.tokens import tokenizer_identity

CHUNK_STAGE_VERSION = "1"  # of what the stage does around the kernel
EMBED_VERSION = "1"
PROJECT_VERSION = "2"
STAGES = ("parse", "chunk", "embed")


@dataclass(frozen=True, slots=True)
class RunContext:
    """One run. `fingerprints` maps stage → fingerprint; `written_at` is the time that all rows of the run carry."""

    lake_root: str
    run_id: str
    workspace: str
    settings: Settings
    fingerprints: dict[str, str]
    written_at: datetime
    objects_uri: str

    @property
    def tables(self) -> str:
        """Root of the Delta tables."""
        return f"{self.lake_root}/tables"

    def stamp(self, stage: str, record_id: str, content_hash: str, epoch: int) -> Stamp:
        return Stamp(record_id, content_hash, self.fingerprints.get(stage, ""), self.run_id, epoch, self.written_at)


def stage_fingerprints(settings: Settings) -> dict[str, str]:
    """Stage → fingerprint = stage version + the part of the configuration that it reads + model identity (design §2).

    Limits belong to parsing: raising one gives documents over it another try.
    """
    model = embedding_identity(settings.embed.model, settings.embed.base_url)
    tokenizer = tokenizer_identity(settings.embed.model)
    limits = orjson.dumps(settings.limits.model_dump(exclude={"attempts"}), option=orjson.OPT_SORT_KEYS).decode()
    chunk = orjson.dumps(settings.chunk.model_dump(), option=orjson.OPT_SORT_KEYS).decode()
    keep = f"keep_originals={settings.objects.keep_originals}"
    return {
        "parse": digest("parse", PARSER_VERSION, limits, keep)[:16],
        "chunk": digest("chunk", CHUNK_STAGE_VERSION, CHUNK_VERSION, chunk, tokenizer)[:16],
        "embed": digest("embed", EMBED_VERSION, model)[:16],
        "project": digest("project", PROJECT_VERSION)[:16],
    }
