"""The model as a teacher of drafters: its weights as arrays, and what it makes of a text layer by layer."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.batch import Batch
from paceline.kernels.linear import ArrayMatrix, float_rows
from paceline.kernels.paging import BLOCK_SIZE
from paceline.kernels.tree_attention import Layout
from paceline.spec.training.target import LayerArrays, Target

from .backends import choose_ops
from .config import EngineConfig
from .device import choose_device
from .model.checkpoint import Checkpoint
from .model.config import ModelConfig
from .model.decoder import Decoder, cache_shape
from .model.weights import LayerWeights, model_fingerprint
from .page_table import blocks_for

Floats = NDArray[np.float32]

_ROWS = 256  # of a pass
_SAMPLED = 2**23  # values of all matrices together that make a checksum


class DecoderTeacher:
    """Implements `Teacher` of spec/training: texts of at most `length` tokens, hidden states after `taps` layers."""

    def __init__(
        self, checkpoint: Checkpoint, config: EngineConfig, taps: Sequence[int], length: int, cache: Path | None = None
    ) -> None:
        model = checkpoint.config
        self._ops = choose_ops(config, checkpoint, choose_device(config.device), cache)
        same = self._ops.pack(ArrayMatrix(np.eye(model.hidden_size, dtype=np.float32)), form="f32")
        self._decoder = Decoder(
            model, checkpoint.load(), self._ops, context_length=length, features=[{tap: same} for tap in taps]
        )
        self._ops.finish()
        checkpoint.close()
        blocks = blocks_for(length)
        self._cache = self._ops.allocate(cache_shape(model), blocks)
        self._table = np.arange(blocks, dtype=np.int32)

    def hidden(self, tokens: Sequence[int]) -> Floats:
        """tokens [n] -> [n, T, H]."""
        ids = np.array(tokens, np.int64)
        if len(ids) > self._table.size * BLOCK_SIZE:
            raise ValueError(f"a text of {len(ids)} tokens is longer than this teacher was made for")
        pieces = []
        for start in range(0, len(ids), _ROWS):
            rows = np.arange(start, min(start + _ROWS, len(ids)))
            layout = Layout.chain(len(rows), self._table, start)
            batch = Batch(ids[rows], rows, rows, np.array([len(rows) - 1]), layout)
            _, _, *features = self._decoder.forward(batch, self._cache)
            pieces.append(np.stack([self._ops.host(feature) for feature in features], axis=1, dtype=np.float32))
        return np.concatenate(pieces)


def target_of(checkpoint: Checkpoint) -> Target:
    """The weights a trainer starts from and learns against, as arrays; layers are read when they are asked for."""
    config, weights = checkpoint.config, checkpoint.load()

    def layer(index: int) -> LayerArrays:
        found = _arrays(weights.layers[index], config)
        checkpoint.close()
        return found

    embed = float_rows(weights.embed)
    target = Target(
        embed=embed,
        head=embed if weights.lm_head is weights.embed else float_rows(weights.lm_head),
        norm=weights.norm,
        eps=config.rms_norm_eps,
        heads=config.num_heads,
        kv_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        intermediate=config.intermediate_size,
        rope_theta=config.rope.theta,
        layers=config.num_layers,
        context_length=config.context_length,
        trained_for=model_fingerprint(weights),
        layer=layer,
    )
    checkpoint.close()
    return target


def weights_checksum(checkpoint: Checkpoint) -> int:
    """Tells quantisations and fine-tunes of a model apart: some of each matrix, how it is stored, and norms.

    A text that one of them writes and states that another makes of it do not belong together. Reads 32 MiB at most.
    """
    weights = checkpoint.load()
    matrices = [weights.embed, weights.lm_head]
    value = zlib.crc32(weights.norm.tobytes())
    for layer in weights.layers:
        matrices += [layer.qkv, layer.out, layer.gate_up, layer.down]
        for norm in (layer.attn_norm, layer.ffn_norm):
            value = zlib.crc32(norm.tobytes(), value)
    parts = [part for matrix in matrices for part in matrix.parts]
    for part in parts:
        rows, columns = part.shape
        some = np.empty((min(rows, max(1, _SAMPLED // len(parts) // columns)), columns), np.float32)
        part.read(0, some)
        value = zlib.crc32(some.tobytes(), zlib.crc32(part.kind.encode(), value))
    checkpoint.close()
    return value


def _arrays(weights: LayerWeights, config: ModelConfig) -> LayerArrays:
    q, k, v = np.split(float_rows(weights.qkv), [config.q_rows, config.q_rows + config.kv_rows])
    gate, up = np.split(float_rows(weights.gate_up), 2)
    return LayerArrays(
        q=q,
        k=k,
        v=v,
        out=float_rows(weights.out),
        gate=gate,
        up=up,
        down=float_rows(weights.down),
        attn_norm=weights.attn_norm,
        ffn_norm=weights.ffn_norm,
        qkv_bias=weights.qkv_bias,
        q_norm=weights.q_norm,
        k_norm=weights.k_norm,
    )
