"""A GGUF file as a checkpoint: names translated, the q/k row permutation undone, end-of-turn tokens found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paceline.engine.errors import ModelError

from .assets import TextAssets
from .config import ModelConfig, from_gguf
from .files import file_fingerprint
from .gguf_file import GGUFFile
from .weights import ModelWeights, check_tensors, expected_tensors, load_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Tokens that end a turn or the text, in the families we read; others that are control tokens do not end anything.
_END_TOKENS = frozenset({"<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<|endoftext|>", "</s>"})
_CONTROL = 3  # tokenizer.ggml.token_type
_PIECE = 1 << 18  # float32 values dequantised at once: 1 MiB, inside the L2 cache

_LAYER_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OTHER_PARTS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def _hf_name(name: str) -> str:
    """Our name of a GGUF tensor, or its own where we have none."""
    part, _, suffix = name.rpartition(".")
    if part in _OTHER_PARTS:
        return f"{_OTHER_PARTS[part]}.{suffix}"
    pieces = part.split(".")
    if len(pieces) == 3 and pieces[0] == "blk" and pieces[2] in _LAYER_PARTS:
        return f"model.layers.{pieces[1]}.{_LAYER_PARTS[pieces[2]]}.{suffix}"
    return name


def rotate_half_order(heads: int, head_dim: int) -> NDArray[np.int64]:
    """Row order that turns interleaved RoPE pairs (2i, 2i + 1) into rotate-half pairs (i, i + head_dim / 2).

    Returns `order` [heads * head_dim]: row r of the result is row order[r] of a llama-architecture GGUF tensor, whose
    converter interleaves the rows of q and k.
    """
    rows = np.arange(heads * head_dim, dtype=np.int64).reshape(heads, head_dim // 2, 2)
    return rows.swapaxes(1, 2).reshape(-1)


class GGUFCheckpoint:
    """A model in one GGUF file. Raises ModelError for a file that cannot be read or run."""

    def __init__(self, path: Path, cache: Path) -> None:
        self._file = GGUFFile(path, cache)
        metadata, tensors = self._file.metadata, self._file.tensors
        factors = self._vector("rope_freqs.weight") if "rope_freqs.weight" in tensors else None
        self.name: str = path.stem
        self.fingerprint: str = file_fingerprint([path])
        self.config: ModelConfig = from_gguf(metadata, {n: t.shape for n, t in tensors.items()}, factors)
        self.text: TextAssets = _text_assets(metadata)
        self._names = {_hf_name(name): name for name in tensors}
        expected = expected_tensors(self.config)
        extras = (
            gguf
            for name, gguf in self._names.items()
            if name not in expected and gguf != "rope_freqs.weight" and not gguf.endswith(".attn_rot_embd")
        )
        shapes = {name: tensors[gguf].shape for name, gguf in self._names.items()}
        check_tensors(expected, shapes, extras, str(path))
        for name in expected:
            self._file.check_type(self._names[name])

    def load(self) -> ModelWeights:
        return load_weights(self.config, self)

    def close(self) -> None:
        self._file.close()

    def kind(self, name: str) -> str:
        return self._file.tensors[self._names[name]].kind

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The tensor's bytes, [rows, bytes per row]: quantised rows are reordered like any others."""
        rows, order = self._file.raw(self._names[name]), self._order(name)
        return rows if order is None else rows[order]

    def read(self, name: str, first: int, out: NDArray[np.float32]) -> None:
        """Dequantise rows into `out`, piece by piece."""
        gguf, order = self._names[name], self._order(name)
        step = max(1, _PIECE // out.shape[1])
        for start in range(0, len(out), step):
            piece = out[start : start + step]
            rows = slice(first + start, first + start + len(piece))
            self._file.rows(gguf, rows if order is None else order[rows], piece)

    def _order(self, name: str) -> NDArray[np.int64] | None:
        if self.config.family != "llama":
            return None
        if ".q_proj." in name:
            return rotate_half_order(self.config.num_heads, self.config.head_dim)
        if ".k_proj." in name:
            return rotate_half_order(self.config.num_kv_heads, self.config.head_dim)
        return None

    def _vector(self, name: str) -> tuple[float, ...]:
        values = np.empty((self._file.raw(name).shape[0], 1), np.float32)
        self._file.rows(name, slice(None), values)
        return tuple(values[:, 0].tolist())


def _text_assets(metadata: Mapping[str, Any]) -> TextAssets:
    tokens = metadata.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list) or not tokens:
        raise ModelError("The model file has no vocabulary (tokenizer.ggml.tokens), so it cannot read or write text.")

    def token_id(key: str) -> int | None:
        value = metadata.get(f"tokenizer.ggml.{key}_token_id")
        return value if isinstance(value, int) and 0 <= value < len(tokens) else None

    bos, eos = token_id("bos"), token_id("eos")
    types = metadata.get("tokenizer.ggml.token_type") or []
    named = [i for i, (t, kind) in enumerate(zip(tokens, types, strict=False)) if kind == _CONTROL and t in _END_TOKENS]
    ends = [i for i in (eos, token_id("eot"), *named) if i is not None]
    return TextAssets(
        tokenizer_json=None,
        gguf=metadata,
        chat_template=metadata.get("tokenizer.chat_template") or None,
        bos_token=None if bos is None else tokens[bos],
        eos_token=None if eos is None else tokens[eos],
        eos_ids=tuple(dict.fromkeys(ends)),
    )
