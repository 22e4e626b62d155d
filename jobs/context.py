"""What every stage of one run knows: the lake, the settings and the fingerprints. Plain data, so that it travels to any worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from raydex.configs.settings import Settings
from raydex.ir.ids import digest
from raydex.ir.rows import Stamp
from raydex.kernels.chunk import CHUNK_VERSION
from raydex.kernels.docling_parse import docling_identity
from raydex.kernels.embed import embedding_identity
from raydex.kernels.ocr import engine_versions
from raydex.kernels.parse import PARSER_VERSION
from raydex.kernels.tokens import tokenizer_identity

PENDING = "pending"  # the mark of captions that a later pass makes
CHUNK_STAGE_VERSION = "1"  # of what the stage does around the kernel
EMBED_VERSION = "1"
PROJECT_VERSION = "3"
OCR_VERSION = "2"
CAPTION_VERSION = "1"
STAGES = ("parse", "observe", "caption", "chunk", "embed")


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

    Limits belong to parsing: raising one gives documents over it another try. Raises ConfigError where docling is chosen but missing.
    """
    model = embedding_identity(settings.embed.model, settings.embed.base_url)
    tokenizer = tokenizer_identity(settings.embed.model)
    limits = _dumped(settings.limits.model_dump(exclude={"attempts"}))
    chunk = _dumped(settings.chunk.model_dump())
    ocr = _dumped(settings.ocr.model_dump(include={"engine", "layout", "images", "least_side"}))
    caption = _dumped(settings.caption.model_dump(exclude={"base_url", "api_key_env", "batch_size"})) if settings.caption.model else "none"
    keep = f"keep_originals={settings.objects.keep_originals}"
    mode = settings.docling.mode
    second = () if mode == "off" else (f"docling={mode}@{docling_identity()}",)
    return {
        "parse": digest("parse", PARSER_VERSION, limits, keep, *second)[:16],
        "observe": digest("observe", OCR_VERSION, ocr, *engine_versions(settings.ocr.engine, settings.ocr.layout))[:16],
        "caption": digest("caption", CAPTION_VERSION, caption)[:16],
        "chunk": digest("chunk", CHUNK_STAGE_VERSION, CHUNK_VERSION, chunk, tokenizer)[:16],
        "embed": digest("embed", EMBED_VERSION, model)[:16],
        "project": digest("project", PROJECT_VERSION)[:16],
    }


def _dumped(values: dict[str, Any]) -> str:
    return orjson.dumps(values, option=orjson.OPT_SORT_KEYS).decode()
