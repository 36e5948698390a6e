"""One GGUF file: metadata and tensor table through an index kept beside the cache, tensors through a memory map.

Parsing the default model's header takes seconds, nearly all of it for the vocabulary, so it is done once per file and
kept as JSON; a file counts as the same while its path, size and modification time do. Format: the GGUF specification,
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from paceline.engine.errors import ModelError

from .dequantize import SUPPORTED, dequantize, row_bytes
from .files import write_atomic

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INDEX_VERSION = 1


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where one tensor lies: GGML type name, shape with rows first, and its bytes in the file."""

    kind: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


class GGUFFile:
    """A readable GGUF file.

    Raises ModelError when the file cannot be opened, is not GGUF, or is truncated.
    """

    def __init__(self, path: Path, cache: Path) -> None:
        """`cache` is the folder under which the index is kept (index/); an unwritable one only costs time."""
        self.path = path
        try:
            status = path.stat()
            with path.open("rb") as file:
                magic = file.read(4)
        except OSError as error:
            raise ModelError(f"The model file {path} cannot be read: {error.strerror or error}.") from error
        if magic != b"GGUF":
            raise ModelError(f"The file {path} is not a GGUF file; give one, or a Hugging Face model folder.")
        key = [_INDEX_VERSION, str(path.resolve()), status.st_size, status.st_mtime_ns]
        name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:20]
        index_path = cache / "index" / f"{name}.json"
        index = _read_index(index_path, key)
        if index is None:
            index = {"key": key, **_parse(path, status.st_size)}
            with suppress(OSError):  # a full or read-only cache: parse again next time
                body = orjson.dumps(index)
                write_atomic(index_path, b"%08x\n" % zlib.crc32(body) + body)
        self.metadata: Mapping[str, Any] = index["metadata"]
        self.tensors: Mapping[str, TensorInfo] = {
            name: TensorInfo(kind, tuple(shape), offset, nbytes)
            for name, (kind, shape, offset, nbytes) in index["tensors"].items()
        }
        self._data: np.memmap[Any, np.dtype[np.uint8]] | None = None

    def check_type(self, name: str) -> None:
        """Raise ModelError if the tensor's type is one we cannot read."""
        kind = self.tensors[name].kind
        if kind not in SUPPORTED:
            raise ModelError(
                f"The tensor {name} in {self.path} has the type {kind}, which is not supported; "
                f"supported: {', '.join(SUPPORTED)}."
            )

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The tensor's bytes, [rows, bytes per row], mapped from the file; a vector has one element per row."""
        info = self.tensors[name]
        self.check_type(name)
        rows, columns = _matrix(info.shape)
        if self._data is None:
            self._data = np.memmap(self.path, dtype=np.uint8, mode="r")
        data: NDArray[np.uint8] = self._data[info.offset : info.offset + info.nbytes]
        return data.reshape(rows, row_bytes(info.kind, columns))

    def rows(self, name: str, order: NDArray[np.int64] | slice, out: NDArray[np.float32]) -> None:
        """Dequantise the rows that `order` selects into `out` [selected rows, columns], C-contiguous."""
        dequantize(np.ascontiguousarray(self.raw(name)[order]), self.tensors[name].kind, out)

    def close(self) -> None:
        """Let the memory map go; the next read opens it again."""
        self._data = None


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    return (shape[0], 1) if len(shape) == 1 else (shape[0], shape[1])


def _read_index(path: Path, key: list[Any]) -> dict[str, Any] | None:
    """The index, or None when there is none, it is for another state of the file, or it is damaged."""
    try:
        checksum, _, body = path.read_bytes().partition(b"\n")
        if checksum != b"%08x" % zlib.crc32(body):
            return None
        index = orjson.loads(body)
    except (OSError, orjson.JSONDecodeError):
        return None
    return index if index.get("key") == key else None


def _parse(path: Path, size: int) -> dict[str, Any]:
    """Read the header by the gguf package. Raises ModelError for a damaged file."""
    from gguf import GGUFReader  # late: a warm start never needs it

    class Strict(GGUFReader):
        """The same reader, but reading past the end is an error, not an empty array, and no memmap is sliced (slow)."""

        def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> NDArray[Any]:
            if self.byte_order != "I":
                raise ModelError(f"The model file {path} is big-endian, which is not supported; use another file.")
            if offset + np.dtype(dtype).itemsize * int(count) > size:
                raise EOFError
            return np.frombuffer(self.data.data, dtype, int(count), offset)

    try:
        reader = Strict(path)
        metadata = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
        tensors = {
            tensor.name: (
                tensor.tensor_type.name,
                [int(n) for n in reversed(tensor.shape)],
                int(tensor.data_offset),
                int(tensor.n_bytes),
            )
            for tensor in reader.tensors
        }
    except ModelError:
        raise
    except EOFError:
        raise ModelError(f"The model file {path} is truncated at {size:,} bytes; download it again.") from None
    except Exception as error:  # the package promises no exception types for damaged input
        raise ModelError(f"The model file {path} is damaged ({error}); download it again.") from error
    return {"metadata": metadata, "tensors": tensors}
