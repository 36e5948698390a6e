"""Memory of one size of pass: filled on the host, brought to the device in one copy, read by the kernels in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import gt
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

NOWHERE = -1  # marks rows, items and entries that a step does not use
_ALIGNMENT = 4  # numbers: launchers tell compiled kernels apart by whether pointers are multiples of 16 bytes


class Staging:
    """Named int32 arrays at fixed places of the device's memory, so that a captured pass finds them where they were,
    each at a multiple of 16 bytes.

    shapes: of each array, the most a step may need. paddings: what stands in the part of an array that a step leaves,
    `NOWHERE` where not given.
    """

    def __init__(
        self, shapes: Mapping[str, Sequence[int]], device: torch.device, paddings: Mapping[str, int] | None = None
    ) -> None:
        self._paddings = paddings or {}
        sizes = {name: int(np.prod(shape)) for name, shape in shapes.items()}
        ends = np.cumsum([0, *(-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes.values())]).tolist()
        total = ends[-1]
        pinned = device.type == "cuda"
        self._host = torch.full((total,), NOWHERE, dtype=torch.int32, pin_memory=pinned)
        self._device = torch.full((total,), NOWHERE, dtype=torch.int32, device=device)
        self._copied = torch.cuda.Event() if pinned else None  # type: ignore[no-untyped-call]
        self._shapes = dict(shapes)
        self._starts = dict(zip(sizes, ends, strict=False))
        self._sizes = sizes
        values = self._host.numpy()
        self._views: dict[str, NDArray[np.int32]] = {
            name: values[start : start + sizes[name]].reshape(shapes[name]) for name, start in self._starts.items()
        }

    def on_device(self) -> dict[str, torch.Tensor]:
        """The arrays where kernels read them; the same memory for every step."""
        return {
            name: self._device[start : start + self._sizes[name]].view(tuple(self._shapes[name]))
            for name, start in self._starts.items()
        }

    def fill(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take this step's arrays, in the order of their places; returns before the device has them.

        Of the last one, unless it has a padding, only what is used is copied: what stands behind it no kernel reads.
        Raises KeyError for a name that is not there, ValueError for an array that does not fit.
        """
        if self._copied is not None:
            self._copied.synchronize()  # the copy of a step that nobody waited for may still read this memory
        end = 0
        for name, values in arrays.items():
            view = self._views[name]
            if values.ndim != view.ndim or any(map(gt, values.shape, view.shape)):
                raise ValueError(f"{name} has the shape {values.shape}, there is room for {view.shape}")
            used_alone = name == next(reversed(self._views)) and view.ndim == 1 and name not in self._paddings
            if not used_alone:
                view.fill(self._paddings.get(name, NOWHERE))
            view[tuple(map(slice, values.shape))] = values
            end = self._starts[name] + (values.size if used_alone else view.size)
        self._device[:end].copy_(self._host[:end], non_blocking=True)
        if self._copied is not None:
            self._copied.record()
