"""A model on disk, whatever its format: open it, see what it is, load its weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from .assets import TextAssets
from .gguf_checkpoint import GGUFCheckpoint

if TYPE_CHECKING:
    from .config import ModelConfig
    from .weights import ModelWeights

__all__ = ["Checkpoint", "TextAssets", "open_checkpoint"]


class Checkpoint(Protocol):
    """A model that is known to be complete and supported, its weights not yet in memory."""

    @property
    def name(self) -> str:
        """What to call the model: the file or folder name, or the hub id it came from."""

    @property
    def config(self) -> ModelConfig: ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the weights may have: what derived data is valid for."""

    @property
    def text(self) -> TextAssets: ...

    def load(self) -> ModelWeights:
        """All weights; matrices are read when they are packed. Raises ModelError."""

    def close(self) -> None:
        """Let go of the open files; the next read opens them again."""


def open_checkpoint(path: Path, cache: Path) -> Checkpoint:
    """Open what `sources.resolve` returned: a .gguf file or a Hugging Face folder.

    `cache` keeps derived data that makes the next start quicker. Raises ModelError.
    """
    if not path.is_dir():
        return GGUFCheckpoint(path, cache)
    from .hf_folder import HFCheckpoint  # with its reader of weights, which a .gguf file does not need

    return HFCheckpoint(path)
