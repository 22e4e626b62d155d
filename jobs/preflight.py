"""The configuration → whether a run can be made by it at all: names, folders, addresses, keys and devices, asked before anything is listed.

Nothing is started, loaded or fetched here, so that a typo costs a second and not the hours before the stage that meets it. Servers of
models are not asked: one that is down now may answer when its stage comes. The invariant: each complaint names the key, its value and what
may stand there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from raydex.configs.settings import EmbedSettings, OcrSettings, Settings
from raydex.ir.errors import ConfigError
from raydex.jobs.observe import NONE
from raydex.kernels.endpoint import check_url, read_key
from raydex.kernels.layout import LAYOUT_ENGINES, load_layout_engine
from raydex.kernels.ocr import OCR_ENGINES, engine_versions, load_ocr_engine
from raydex.kernels.tokens import DEFAULT_MODEL, NO_MODEL, default_model_folder, hub_file

REFUSED = "docling"  # a name that the tables of engines hold to say why it is none
SERVED = "surya"
PACKAGED = ("rapidocr", "rapid-layout")
EMBED_DEVICE = re.compile(r"auto|cpu|(?:cuda|mps|xpu|hpu|npu)(?::\d+)?")
OCR_DEVICE = re.compile(r"auto|cpu|cuda(?::\d+)?")


def check_settings(settings: Settings) -> None:
    """Raises ConfigError for the first thing that no run could be made with."""
    from raydex.jobs.caption_stage import check_captions
    from raydex.kernels.chunk import STRATEGIES
    from raydex.kernels.docling_parse import docling_identity

    check_engines(settings.ocr)
    check_captions(settings)
    check_captioner(settings)
    check_embedding(settings.embed)
    check_device("embed", settings.embed.device, settings.stages.embed.gpus)
    check_device("ocr", settings.ocr.device, settings.stages.observe.gpus, stage="observe")
    if settings.chunk.strategy not in STRATEGIES:
        raise _unknown("chunk.strategy", settings.chunk.strategy, tuple(STRATEGIES))
    if settings.docling.mode != "off":
        docling_identity()


def check_engines(ocr: OcrSettings) -> None:
    """Raises ConfigError when there is no engine of such a name, its package is not installed, or its server is not named."""
    for key, name, known, load in (
        ("ocr.engine", ocr.engine, OCR_ENGINES, load_ocr_engine),
        ("ocr.layout", ocr.layout, LAYOUT_ENGINES, load_layout_engine),
    ):
        if name == NONE:
            continue
        if name not in known:
            raise _unknown(key, name, (*(engine for engine in known if engine != REFUSED), NONE))
        if name in (SERVED, REFUSED):
            try:
                load(name, "cpu", ocr.threads)  # loads nothing: the one is a client, the other says why it is none
            except ConfigError as error:
                error.place = error.place or f"{key}: {name}"
                raise
        elif name in PACKAGED and engine_versions(name) == [""]:
            raise ConfigError(f"{key} is {name}, and the package {name} is not installed", place=key, remedy="Run ./quickstart again")


def check_embedding(embed: EmbedSettings) -> None:
    """Raises ConfigError when the model is not on this machine, or the address or key of its server is none."""
    if embed.base_url:
        check_url(embed.base_url, "embed")
        if embed.api_key_env:
            read_key(embed.api_key_env, "embed")
    elif embed.model == DEFAULT_MODEL:
        default_model_folder()
    elif embed.model != NO_MODEL:
        check_model_folder(embed.model)


def check_captioner(settings: Settings) -> None:
    """Raises ConfigError when vLLM or the model's folder is not there, or the address or key of the server is none."""
    from raydex.jobs.caption_engine import check_model

    caption = settings.caption
    if caption.base_url:
        check_url(caption.base_url, "caption")
        if caption.api_key_env:
            read_key(caption.api_key_env, "caption")
    elif caption.model:
        check_model(caption, settings.stages.caption.gpus)


def check_model_folder(model: str) -> Path:
    """The folder of a sentence-transformers model. Raises ConfigError where it is not there or holds none."""
    folder = Path(model).expanduser()
    if not folder.is_dir():
        held = hub_file(model, "config.json")
        if held is None:
            raise ConfigError(
                f"embed.model is {model!r}: that is no folder, and no model in the hub's cache on this machine",
                place="embed.model",
                remedy=f"Use {DEFAULT_MODEL} (packaged), {NO_MODEL}, the folder of a sentence-transformers model, or fetch one first "
                "(hf download NAME): a run fetches nothing",
            )
        folder = held.parent
    if not any(folder.rglob("config.json")) or not any(folder.rglob("*.safetensors")):
        raise ConfigError(
            f"embed.model is {model!r}, and there is no config.json with weights (*.safetensors) in it",
            place="embed.model",
            remedy="Name a folder that holds a sentence-transformers model",
        )
    return folder


def check_device(section: str, device: str, gpus: float, stage: str = "") -> None:
    """A GPU is reserved, used and paid for, or none of these. Raises ConfigError for a name that is no device's, and when the device and
    the stage's GPUs disagree."""
    stage = stage or section
    if not (OCR_DEVICE if section == "ocr" else EMBED_DEVICE).fullmatch(device):
        raise _unknown(f"{section}.device", device, ("auto", "cpu", "cuda", "cuda:N"))
    if gpus and device == "cpu":
        said = f"stages.{stage}.gpus reserves {gpus:g} GPUs a worker, and {section}.device computes on the CPU"
        raise ConfigError(said, place=f"{section}.device", remedy=f"Set {section}.device: auto, or stages.{stage}.gpus: 0")
    if not gpus and device.startswith("cuda"):
        said = f"{section}.device is {device}, and stages.{stage}.gpus gives the stage no GPU"
        raise ConfigError(said, place=f"stages.{stage}.gpus", remedy=f"Set stages.{stage}.gpus: 1 ({section}.device: auto then takes it)")


def _unknown(key: str, value: str, allowed: Sequence[str]) -> ConfigError:
    return ConfigError(f"{key} is {value!r}, which it cannot be", place=key, remedy=f"Use one of: {', '.join(allowed)}")
