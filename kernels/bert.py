"""Token ids → unit vectors by a BERT encoder read from a sentence-transformers folder: safetensors and torch, nothing else.

Why: importing sentence-transformers costs a worker three times what torch alone does. The invariant: the result equals
sentence-transformers' for the same folder within 1e-5 (mean or CLS pooling, then unit length), in half precision within 1e-3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from raydex.ir.errors import CapacityError, InputError

_LAYER_NORM = ("LayerNorm.weight", "LayerNorm.bias")


@dataclass(frozen=True, slots=True)
class BertConfig:
    hidden_size: int
    heads: int
    layers: int
    epsilon: float
    max_tokens: int
    pooling: str
    pad_id: int


def read_config(folder: Path) -> BertConfig:
    """What the folder's files declare. Raises InputError (model_load) when they are unreadable or not a plain BERT encoder."""
    try:
        config = orjson.loads((folder / "config.json").read_bytes())
        sentence = orjson.loads((folder / "sentence_bert_config.json").read_bytes())
        pooling = orjson.loads((folder / "1_Pooling" / "config.json").read_bytes())
        names = {name for name, on in pooling.items() if name.startswith("pooling_mode_") and on is True}
        kinds = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
        if config["model_type"] != "bert" or config["hidden_act"] != "gelu" or len(names) != 1 or not names <= set(kinds):
            raise InputError("not a plain BERT encoder", reject_class="model_load", place=str(folder))
        return BertConfig(
            config["hidden_size"],
            config["num_attention_heads"],
            config["num_hidden_layers"],
            config["layer_norm_eps"],
            min(sentence["max_seq_length"], config["max_position_embeddings"]),
            kinds[names.pop()],
            config.get("pad_token_id", 0),
        )
    except (OSError, KeyError, ValueError) as error:
        raise _unreadable(folder, error) from error


def _unreadable(folder: Path, error: Exception) -> InputError:
    remedy = "Install the model's files again"
    return InputError(f"the model cannot be read: {error}", reject_class="model_load", place=str(folder), remedy=remedy)


class BertEncoder:
    """Stateful: the weights on one device, in float32, or in float16 where `half` is set: for accelerators, whose sums keep float32."""

    def __init__(self, folder: Path, device: str = "cpu", half: bool = False) -> None:
        """Raises InputError (model_load) when the weights are missing, cut off or of another shape."""
        import torch
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        self.config = read_config(folder)
        try:
            self.device = torch.device(device)
            weights = load_file(folder / "model.safetensors", device=device)
            kind = torch.float16 if half else torch.float32
            self._weights: dict[str, Any] = {name: value.to(kind) for name, value in weights.items() if value.is_floating_point()}
            self._layers = [self._layer(f"encoder.layer.{at}.") for at in range(self.config.layers)]
        except (OSError, SafetensorError, KeyError, RuntimeError) as error:
            raise _unreadable(folder, error) from error

    def _layer(self, name: str) -> dict[str, Any]:
        """Weights of one layer by short names, query, key and value stacked into one product."""
        import torch

        get = self._weights.pop
        parts = [f"{name}attention.self.{part}." for part in ("query", "key", "value")]
        return {
            "qkv": (torch.cat([get(f"{p}weight") for p in parts]), torch.cat([get(f"{p}bias") for p in parts])),
            "out": (get(f"{name}attention.output.dense.weight"), get(f"{name}attention.output.dense.bias")),
            "norm1": tuple(get(f"{name}attention.output.{part}") for part in _LAYER_NORM),
            "up": (get(f"{name}intermediate.dense.weight"), get(f"{name}intermediate.dense.bias")),
            "down": (get(f"{name}output.dense.weight"), get(f"{name}output.dense.bias")),
            "norm2": tuple(get(f"{name}output.{part}") for part in _LAYER_NORM),
        }

    def encode(self, ids: Sequence[Sequence[int]]) -> np.ndarray:
        """float32 (len(ids), hidden size), unit length. Raises CapacityError when the accelerator's memory runs out."""
        import torch

        lengths = [len(row) for row in ids]
        width = max(lengths)
        grid = np.full((len(ids), width), self.config.pad_id, np.int64)
        for at, row in enumerate(ids):
            grid[at, : len(row)] = row
        try:
            with torch.inference_mode():
                tokens = torch.from_numpy(grid)
                if self.device.type == "cuda":
                    tokens = tokens.pin_memory()
                tokens = tokens.to(self.device, non_blocking=True)
                sizes = torch.tensor(lengths, device=self.device)
                mask = torch.arange(width, device=self.device)[None, :] < sizes[:, None]
                hidden = self._forward(tokens, None if min(lengths) == width else mask).float()
                if self.config.pooling == "mean":
                    pooled = (hidden * mask[:, :, None]).sum(1) / sizes[:, None]
                else:
                    pooled = hidden[:, 0]
                return torch.nn.functional.normalize(pooled, dim=1).cpu().numpy()  # type: ignore[no-any-return]
        except torch.OutOfMemoryError as error:
            raise CapacityError(f"the accelerator's memory does not hold a batch of {len(ids)} texts") from error

    def _forward(self, tokens: Any, mask: Any) -> Any:
        from torch.nn import functional as F

        config = self.config
        count, width = tokens.shape
        shape = (config.hidden_size,)
        table = self._weights
        hidden = F.embedding(tokens, table["embeddings.word_embeddings.weight"])
        hidden = hidden + table["embeddings.token_type_embeddings.weight"][0] + table["embeddings.position_embeddings.weight"][:width]
        scale, shift = (table[f"embeddings.{part}"] for part in _LAYER_NORM)
        hidden = F.layer_norm(hidden, shape, scale, shift, config.epsilon)
        seen = None if mask is None else mask[:, None, None, :]
        for layer in self._layers:
            query, key, value = F.linear(hidden, *layer["qkv"]).view(count, width, 3, config.heads, -1).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=seen)
            mixed = F.linear(mixed.transpose(1, 2).reshape(count, width, -1), *layer["out"])
            scale, shift = layer["norm1"]
            hidden = F.layer_norm(hidden + mixed, shape, scale, shift, config.epsilon)
            wide = F.linear(F.gelu(F.linear(hidden, *layer["up"])), *layer["down"])
            scale, shift = layer["norm2"]
            hidden = F.layer_norm(hidden + wide, shape, scale, shift, config.epsilon)
        return hidden
