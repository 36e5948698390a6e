"""Arrays keep types, shapes and values, whatever their memory was like."""

from __future__ import annotations

import numpy as np
import torch

from paceline.kernels.gpu.transfer import upload


def test_arrays_arrive_as_they_are() -> None:
    wide = np.arange(12, dtype=np.int64).reshape(3, 4)
    arrays = [np.array([1, 2, 3], np.int32), wide[:, 1], np.array([[0.5], [-np.inf]]), wide.T, np.empty(0, np.int32)]
    tensors = upload(arrays, torch.device("cpu"))
    for tensor, array in zip(tensors, arrays, strict=True):
        assert tuple(tensor.shape) == array.shape
        assert tensor.numpy().dtype == array.dtype
        assert np.array_equal(tensor.numpy(), array)
        assert tensor.storage_offset() * tensor.itemsize % 16 == 0
    assert upload([], torch.device("cpu")) == []
