"""A trained drafter's files: config.json and model.safetensors, as the engine reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save

from .files import write_atomically
from .student import Student
from .target import Target


def save_drafter(
    folder: Path,
    student: Student,
    target: Target,
    vocabulary: NDArray[np.int64],
    companions: Mapping[str, bytes] = MappingProxyType({}),
) -> None:
    """Weights in bfloat16. The config comes last: with it the drafter exists. companions: other files of the folder."""
    config: dict[str, object] = {
        **student.config(),
        "vocab_size": target.vocab_size,
        "draft_vocab_size": len(vocabulary),
        "torch_dtype": "bfloat16",
        "trained_for": target.trained_for,
    }
    tensors = {**_state(student), **student.extras(vocabulary)}
    for name, tensor in tensors.items():
        tensors[name] = tensor.to("cpu", torch.bfloat16 if tensor.is_floating_point() else tensor.dtype).contiguous()
    for name, content in companions.items():
        write_atomically(folder / name, content)
    write_atomically(folder / "model.safetensors", save(tensors, metadata={"format": "pt"}))
    write_atomically(folder / "config.json", json.dumps(config, indent=1).encode())


def d2t(vocabulary: NDArray[np.int64]) -> dict[str, torch.Tensor]:
    """What to add to a guess's number to get the target's id, as published EAGLE-3 checkpoints have it.

    vocabulary: [N] ids that are guessed.
    """
    return {"d2t": torch.from_numpy(vocabulary - np.arange(len(vocabulary)))}


class Tensors(Protocol):
    """A drafter's file. Both raise an error of their own for a tensor that is not there, or not of this shape."""

    def floats(self, name: str, *shape: int) -> NDArray[np.float32]: ...

    def tensor(self, name: str, *shape: int) -> NDArray[np.generic]: ...


def load_weights(student: Student, file: Tensors) -> None:
    """The inverse, for measuring what was trained, or training it further. Raises what `file` raises."""
    state = {name: torch.from_numpy(file.floats(name, *tensor.shape)) for name, tensor in _state(student).items()}
    student.module.load_state_dict(state)


def _state(student: Student) -> Mapping[str, torch.Tensor]:
    return student.module.state_dict()
