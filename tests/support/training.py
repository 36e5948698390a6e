"""A tiny target and its passes, for tests of training."""

from __future__ import annotations

import numpy as np
import torch

from paceline.spec.training.student import Examples
from paceline.spec.training.target import LastLayer, Target

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INNER = 32, 4, 2, 8, 48


def random_target(vocab: int = 29, seed: int = 0) -> Target:
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        return (random.standard_normal((rows, columns)) * columns**-0.5).astype(np.float32)

    def norm() -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        return (1 + 0.2 * random.standard_normal(HIDDEN)).astype(np.float32)

    return Target(
        embed=matrix(vocab, HIDDEN) * 3,
        head=matrix(vocab, HIDDEN) * 3,
        norm=norm(),
        eps=1e-5,
        heads=HEADS,
        kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        rope_theta=10000.0,
        layers=2,
        context_length=256,
        trained_for=7,
        last=LastLayer(
            q=matrix(HEADS * HEAD_DIM, HIDDEN),
            k=matrix(KV_HEADS * HEAD_DIM, HIDDEN),
            v=matrix(KV_HEADS * HEAD_DIM, HIDDEN),
            out=matrix(HIDDEN, HEADS * HEAD_DIM),
            gate=matrix(INNER, HIDDEN),
            up=matrix(INNER, HIDDEN),
            down=matrix(HIDDEN, INNER),
            attn_norm=norm(),
            ffn_norm=norm(),
        ),
    )


def examples_of(
    target: Target, tokens: list[list[int]], hidden: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
) -> Examples:
    """tokens [B, L], hidden [B, L, T, H]; every token is an answer."""
    ids = torch.tensor(tokens)
    return Examples(
        ids, torch.from_numpy(target.embed)[ids], torch.from_numpy(hidden), torch.ones_like(ids, dtype=torch.bool)
    )
