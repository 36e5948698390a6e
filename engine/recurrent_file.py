"""Recurrent drafters from their files.

embed_norm.weight, hidden_norm.weight, mlp_norm.weight, norm.weight      [H]
mix.weight                                                              [H, 2H]
mlp.gate_proj.weight, mlp.up_proj.weight                                [I, H]
mlp.down_proj.weight                                                    [H, I]
d2t                                                                     [N], as in EAGLE-3's files
"""

from __future__ import annotations

import numpy as np

from paceline.spec.recurrent import RecurrentWeights

from .drafter_file import DrafterFile
from .model.config import ModelConfig


def read_recurrent(file: DrafterFile, target: ModelConfig) -> RecurrentWeights:
    """Raises ModelError where the drafter does not fit the target."""
    size, inner = file.size("hidden_size"), file.size("intermediate_size")
    file.check_hidden(size, target)
    return RecurrentWeights(
        embed_norm=file.floats("embed_norm.weight", size),
        hidden_norm=file.floats("hidden_norm.weight", size),
        mix=file.floats("mix.weight", size, 2 * size),
        mlp_norm=file.floats("mlp_norm.weight", size),
        gate_up=np.concatenate([file.floats(f"mlp.{name}_proj.weight", inner, size) for name in ("gate", "up")]),
        down=file.floats("mlp.down_proj.weight", size, inner),
        norm=file.floats("norm.weight", size),
        eps=file.number("rms_norm_eps", 1e-6),
        vocabulary=file.vocabulary(target),
    )
