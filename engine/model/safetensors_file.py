"""One safetensors file: its table of tensors, and their bytes through a memory map.

The package's own readers hand tensors to a framework, and numpy knows no bfloat16; the bytes are all we need. Format:
https://huggingface.co/docs/safetensors - the header's length, the header as JSON, then the tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from paceline.engine.errors import ModelError

from .gguf_file import TensorInfo


class SafetensorsFile:
    """A readable safetensors file. Raises ModelError for one that is damaged, and where a read fails later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with safe_open(path, framework="numpy"):
                pass  # the package checks the header: that tensors fill the file, without a gap and without overlapping
            with path.open("rb") as file:
                length = int.from_bytes(file.read(8), "little")
                header = orjson.loads(file.read(length))
        except (OSError, SafetensorError, orjson.JSONDecodeError) as error:
            raise ModelError(
                f"The weights file {path} is damaged or truncated ({error}); download it again."
            ) from error
        self.tensors: Mapping[str, TensorInfo] = {
            name: _info(entry, 8 + length) for name, entry in header.items() if name != "__metadata__"
        }
        self._data: np.memmap[Any, np.dtype[np.uint8]] | None = None

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The tensor's bytes, [rows, bytes per row]; a vector has one element per row, a lone number is one row."""
        info = self.tensors[name]
        try:
            if self._data is None:
                self._data = np.memmap(self.path, dtype=np.uint8, mode="r")
            data: NDArray[np.uint8] = self._data[info.offset : info.offset + info.nbytes]
            if data.size != info.nbytes:
                raise ValueError("it became shorter")
        except (OSError, ValueError) as error:  # an empty file cannot be mapped: a ValueError
            raise ModelError(f"The weights file {self.path} cannot be read any more ({error}).") from error
        rows = info.shape[0] if info.shape else 1
        return data.reshape(rows, info.nbytes // max(rows, 1))

    def close(self) -> None:
        """Let the memory map go; the next read opens it again."""
        self._data = None


def _info(entry: Mapping[str, Any], start: int) -> TensorInfo:
    first, last = entry["data_offsets"]
    return TensorInfo(entry["dtype"], tuple(entry["shape"]), start + first, last - first)
