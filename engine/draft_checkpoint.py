"""A whole model as a draft model: opened, and compared with the target it shall draft for."""

from __future__ import annotations

from pathlib import Path

from paceline.kernels.linear import Matrix

from .errors import ModelError
from .model.assets import TextAssets
from .model.checkpoint import Checkpoint, open_checkpoint
from .model.sources import default_cache
from .model.vocabulary import mismatch

_FOUR_BITS = frozenset({"Q4_0", "Q4_1"})


def open_draft(path: Path, text: TextAssets, cache: Path | None) -> Checkpoint:
    """text: of the target. Raises ModelError for a model that cannot be read or whose tokens mean something else."""
    checkpoint = open_checkpoint(path, cache or default_cache())
    difference = mismatch(text, checkpoint.text)
    if difference is not None:
        raise ModelError(f"The model {path} cannot draft for this one, whose tokenizer is another: {difference}.")
    return checkpoint


def draft_form(matrix: Matrix) -> str:
    """What to keep a matrix in: four bits as they are stored, anything else in eight. It only has to guess."""
    return "q4" if {part.kind for part in matrix.parts} <= _FOUR_BITS else "q8"
