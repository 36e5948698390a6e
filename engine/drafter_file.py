"""Files of trained drafters: a folder with config.json and its weights, published ones and our own.

Pickled weights are code until proven otherwise: torch reads them with `weights_only`, or not at all.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import orjson
from numpy.typing import NDArray

from paceline.kernels import bfloat16

from .errors import ModelError
from .model.config import ModelConfig
from .model.safetensors_file import SafetensorsFile

if TYPE_CHECKING:
    import torch

CONFIG = "config.json"
_SAFETENSORS = ("model.safetensors", "medusa_lm_head.safetensors")
_PICKLES = ("pytorch_model.bin", "medusa_lm_head.pt")
_DTYPES = {"F32": np.float32, "F16": np.float16, "F64": np.float64, "I64": np.int64, "I32": np.int32, "BOOL": np.bool_}

_MOST = 1e36  # what a setting may be at the most: float32 holds it

Tensor = NDArray[Any]


class DrafterFile:
    """The config and the tensors of one drafter. Raises ModelError, naming the file, for what cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / CONFIG
        try:
            if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe would be waited for
                raise OSError(errno.EINVAL, "no regular file")
            config = orjson.loads(path.read_bytes())
        except orjson.JSONDecodeError as error:
            raise ModelError(f"The drafter's config {path} is not JSON ({error}); fetch the drafter again.") from error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ModelError(
                f"The drafter's config {path} cannot be read ({reason}); name a drafter's folder."
            ) from error
        if not isinstance(config, dict):
            raise ModelError(f"The drafter's config {path} must hold a JSON object; fetch the drafter again.")
        self.config: Mapping[str, Any] = config

    @cached_property
    def _tensors(self) -> Mapping[str, Tensor]:
        """Read late: what is no drafter may be a whole model, and large."""
        return _read(self.folder)

    @property
    def architectures(self) -> tuple[str, ...]:
        named = self.config.get("architectures")
        return tuple(each for each in named if isinstance(each, str)) if isinstance(named, list) else ()

    def number(self, name: str, default: float | None = None) -> float:
        """Above 0; the default where the config says nothing, or null."""
        return self._positive(name, default, "a number")

    def size(self, name: str, default: int | None = None) -> int:
        """A whole number above 0; the default where the config says nothing, or null."""
        return int(self._positive(name, default, "a whole number"))

    def _positive(self, name: str, default: float | None, kind: str) -> float:
        value = self.config.get(name)
        if value is None and default is not None:
            value = default
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else 0
        if not 0 < number < _MOST or (kind == "a whole number" and number != int(number)):
            says = "does not say" if value is None else f"has {repr(value)[:60]} as"
            raise ModelError(
                f"The drafter's config {self.folder / CONFIG} {says} {name}, which must be {kind} above 0; fetch the "
                "drafter again."
            )
        return number

    def check_hidden(self, size: int, target: ModelConfig) -> None:
        """Raises ModelError unless the target has hidden states of the size that the drafter reads."""
        if size != target.hidden_size:
            raise ModelError(
                f"The drafter {self.folder} reads hidden states of size {size}, but this model's have "
                f"{target.hidden_size}; it was made for another model."
            )

    def vocabulary(self, target: ModelConfig) -> NDArray[np.int64]:
        """[N] the target's id of each guessable token, ascending; `d2t` holds what to add to its number to get it.

        Raises ModelError where they are not the target's.
        """
        vocab = self.size("vocab_size")
        if vocab != target.vocab_size:
            raise ModelError(
                f"The drafter {self.folder} guesses among {vocab} tokens, but this model has {target.vocab_size}; it "
                "was made for another model."
            )
        guessable = self.size("draft_vocab_size", vocab)
        if guessable > vocab:
            raise ModelError(
                f"The drafter {self.folder} guesses among {guessable} tokens, but its model has {vocab}; it is "
                "damaged, fetch it again."
            )
        ids = np.arange(guessable, dtype=np.int64)
        if guessable == vocab:
            return ids
        ids += self.ids("d2t", guessable)
        if ids.min() < 0 or ids.max() >= vocab:
            raise ModelError(
                f"The tensor d2t of the drafter {self.folder} names tokens that do not exist; it is damaged, fetch the "
                "drafter again."
            )
        if (np.diff(ids) <= 0).any():
            raise ModelError(
                f"The tensor d2t of the drafter {self.folder} must name each token once, in ascending order; it is "
                "damaged, fetch the drafter again."
            )
        return ids

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def floats(self, name: str, *shape: int) -> NDArray[np.float32]:
        """A copy of the tensor called `name`, which must have this shape: a file's own bytes cannot be written to."""
        with np.errstate(over="ignore"):  # looked for below
            found = np.array(self.tensor(name, *shape), np.float32, order="C")
        if not np.isfinite(found).all():
            raise ModelError(
                f"The tensor {name} of the drafter {self.folder} holds values that are not finite; it is damaged, "
                "fetch it again."
            )
        return found

    def ids(self, name: str, count: int) -> NDArray[np.int64]:
        """A copy of the tensor called `name`, [count] whole numbers."""
        found = self.tensor(name, count)
        if found.dtype.kind not in "iu":
            raise ModelError(
                f"The tensor {name} of the drafter {self.folder} must hold whole numbers and is of the type "
                f"{found.dtype}; the drafter is damaged, fetch it again."
            )
        return np.array(found, np.int64)

    def shape(self, name: str) -> tuple[int, ...]:
        """Of the tensor called `name`, at least one axis."""
        return self._found(name).shape or (1,)

    def _found(self, name: str) -> Tensor:
        found = self._tensors.get(name)
        if found is None:
            raise ModelError(
                f"The tensor {name} is missing in the drafter {self.folder}, which is damaged, or of another kind than "
                "its config says; fetch it again."
            )
        return found

    def tensor(self, name: str, *shape: int) -> Tensor:
        found = self._found(name)
        if found.shape != shape:
            raise ModelError(
                f"The tensor {name} of the drafter {self.folder} has the shape {list(found.shape)} where {list(shape)} "
                "is needed; the drafter was made for another model, or is damaged."
            )
        return found


def answers(asked: Callable[[], bool]) -> bool:
    """What the system refuses to look at, such as a name of 5,000 letters, is nothing."""
    try:
        return asked()
    except OSError:
        return False


def _read(folder: Path) -> Mapping[str, Tensor]:
    for name in _SAFETENSORS:
        if (folder / name).is_file():
            return _read_safetensors(folder / name)
    for name in _PICKLES:
        if (folder / name).is_file():
            return _read_pickle(folder / name)
    raise ModelError(
        f"The drafter {folder} has none of the files {', '.join((*_SAFETENSORS, *_PICKLES))}; fetch its weights, too."
    )


def _read_safetensors(path: Path) -> Mapping[str, Tensor]:
    file = SafetensorsFile(path)
    tensors: dict[str, Tensor] = {}
    for name, info in file.tensors.items():
        raw = np.ascontiguousarray(file.raw(name)).reshape(-1)
        if info.kind == "BF16":
            values = np.empty(raw.size // 2, np.float32)
            bfloat16.widen(raw.view(np.uint16), values)
            tensors[name] = values.reshape(info.shape)
        elif info.kind in _DTYPES:
            tensors[name] = raw.view(_DTYPES[info.kind]).reshape(info.shape)
        else:
            raise ModelError(
                f"The tensor {name} in {path} has the type {info.kind}, which no drafter is read from; convert it to "
                "BF16 or F32."
            )
    file.close()
    return tensors


def _read_pickle(path: Path) -> Mapping[str, Tensor]:
    import torch  # only here: it takes seconds

    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ModelError(f"The pickled weights {path} cannot be read ({reason}); check the file.") from error
    except Exception as error:  # torch raises what its unpickler happens to, and its texts advise against weights_only
        raise ModelError(
            f"The pickled weights {path} are damaged or hold code beside tensors, and code is not run; fetch them "
            "again, or as safetensors."
        ) from error
    if not isinstance(loaded, dict) or not all(
        isinstance(name, str) and isinstance(value, torch.Tensor) and _is_plain(value) for name, value in loaded.items()
    ):
        raise ModelError(f"The pickled weights {path} are not a table of plain tensors; convert them to safetensors.")
    tensors = cast("dict[str, torch.Tensor]", loaded)
    return {name: (t.float() if t.is_floating_point() else t).numpy(force=True) for name, t in tensors.items()}


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether numpy can hold it."""
    import torch

    return tensor.layout is torch.strided and not (tensor.is_complex() or tensor.is_quantized or tensor.is_meta)
