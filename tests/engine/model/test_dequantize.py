"""Block formats turn into the very floats that the gguf package makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize as reference
from gguf.quants import quantize

from paceline.engine.model.dequantize import SUPPORTED, dequantize, row_bytes


@pytest.mark.parametrize("shape", [(1, 32), (3, 64), (130, 96), (17, 2048)])
@pytest.mark.parametrize("kind", SUPPORTED)
def test_bit_equal_to_gguf(kind: str, shape: tuple[int, int]) -> None:
    values = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    values[0, :32] = 0.0  # a block of one value has scale 0
    qtype = GGMLQuantizationType[kind]
    raw = quantize(values, qtype)
    out = np.full(shape, np.nan, np.float32)
    packed = raw.view(np.uint8).reshape(shape[0], row_bytes(kind, shape[1]))
    dequantize(packed, kind, out)
    expected = reference(raw, qtype)
    np.testing.assert_array_equal(out.view(np.uint32), np.ascontiguousarray(expected).view(np.uint32))


@pytest.mark.parametrize("kind", SUPPORTED)
def test_any_bytes_are_read_alike(kind: str) -> None:
    """Random bytes: every scale, minimum and nibble pattern, infinities and NaN included."""
    raw = np.random.default_rng(2).integers(0, 256, (64, row_bytes(kind, 256)), dtype=np.uint8)
    out = np.empty((64, 256), np.float32)
    with np.errstate(all="ignore"):
        dequantize(raw, kind, out)
        expected = reference(raw, GGMLQuantizationType[kind]).reshape(64, 256)
    np.testing.assert_array_equal(out, expected)
