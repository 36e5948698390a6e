"""Medusa and Hydra heads from their files. Names of tensors are those of published checkpoints.

    {k}.{layer}.linear.weight, .bias            block `layer` of head k, [H, H]; of Hydra's first, [H, (k + 2) H]
    {k}.{layer}.res_connection.weight, .bias    beside Hydra's first: what its input is multiplied with to be added
    {k}.{layers}.weight                         the head's own rows [N, H]
    vocabulary                                  ours: [N] int64, the guessable tokens, ascending; absent where all are

Ours lack a head's own rows where the target's serve, and name `trained_for` (see `speculators`).
"""

from __future__ import annotations

from itertools import count

import numpy as np

from paceline.kernels.rank import Vocabulary
from paceline.spec.heads import Block, HeadsWeights

from .drafter_file import DrafterFile
from .errors import ModelError
from .model.config import ModelConfig

PUBLISHED = "medusa_num_heads"  # a published config names no architecture of its own, but this

_PREFIXES = ("", "medusa_head.")  # the second where heads were saved as a part of their model


def read_medusa(file: DrafterFile, target: ModelConfig) -> HeadsWeights:
    """Raises ModelError where the heads do not fit the target."""
    return _read(file, target, embeddings=False)


def read_hydra(file: DrafterFile, target: ModelConfig) -> HeadsWeights:
    """Raises ModelError where the heads do not fit the target."""
    return _read(file, target, embeddings=True)


def _read(file: DrafterFile, target: ModelConfig, *, embeddings: bool) -> HeadsWeights:
    """embeddings: whether a head reads those of the tokens before its own, as Hydra's do."""
    prefix = next((each for each in _PREFIXES if f"{each}0.0.linear.weight" in file), None)
    if prefix is None:
        raise ModelError(f"The drafter {file.folder} holds no heads (0.0.linear.weight); it is damaged.")
    size = file.shape(f"{prefix}0.0.linear.weight")[0]
    file.check_hidden(size, target)
    # The heads are counted: published configs name fewer than the file holds.
    names = [f"{prefix}{head}." for head in range(_run(file, prefix, ".0.linear.weight"))]
    layers = [_run(file, name, ".linear.weight") for name in names]
    heads = tuple(
        tuple(
            _block(file, f"{name}{layer}.", size, (head + 2) * size if embeddings and layer == 0 else size)
            for layer in range(layers[head])
        )
        for head, name in enumerate(names)
    )
    vocabulary = _vocabulary(file, target)
    own = [f"{name}{layers[head]}.weight" for head, name in enumerate(names)]
    if own[0] not in file:
        return HeadsWeights(heads=heads, vocabulary=vocabulary)
    guessable = file.shape(own[0])[0]
    if vocabulary is None and guessable != target.vocab_size:
        raise ModelError(
            f"The drafter {file.folder} guesses among {guessable} tokens, but this model has {target.vocab_size}; it "
            "was made for another model."
        )
    outs = tuple(file.floats(name, guessable if vocabulary is None else len(vocabulary), size) for name in own)
    return HeadsWeights(heads=heads, vocabulary=vocabulary, outs=outs)


def _run(file: DrafterFile, before: str, after: str) -> int:
    """How many numbers from 0 on stand between `before` and `after` in a tensor's name."""
    return next(number for number in count() if f"{before}{number}{after}" not in file)


def _block(file: DrafterFile, name: str, size: int, width: int) -> Block:
    weight, bias = file.floats(f"{name}linear.weight", size, width), file.floats(f"{name}linear.bias", size)
    if width == size:
        return Block(weight=weight, bias=bias)
    if f"{name}res_connection.weight" not in file:  # ours add the hidden state as it is, the first of what a head reads
        return Block(weight=weight, bias=bias, skip=np.eye(size, width, dtype=np.float32))
    return Block(
        weight=weight,
        bias=bias,
        skip=file.floats(f"{name}res_connection.weight", size, width),
        skip_bias=file.floats(f"{name}res_connection.bias", size),
    )


def _vocabulary(file: DrafterFile, target: ModelConfig) -> Vocabulary | None:
    if "vocabulary" not in file:
        return None
    ids = file.ids("vocabulary", file.shape("vocabulary")[0])
    if not len(ids) or ids[0] < 0 or (np.diff(ids) <= 0).any():
        raise ModelError(f"The tensor vocabulary of the drafter {file.folder} is not ascending; it is damaged.")
    if ids[-1] >= target.vocab_size:
        raise ModelError(
            f"The drafter {file.folder} guesses token {ids[-1]}, but this model has {target.vocab_size} tokens; it was "
            "made for another model."
        )
    return ids
