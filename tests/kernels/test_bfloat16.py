"""Widening and narrowing against torch, which has the type."""

from __future__ import annotations

import numpy as np
import torch

from paceline.kernels.bfloat16 import narrow, widen


def test_every_value_is_widened_as_torch_widens_it() -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    out = np.empty(bits.shape, np.float32)
    widen(bits, out)
    want = torch.from_numpy(bits).view(torch.bfloat16).float()
    assert np.array_equal(out.view(np.uint32), want.numpy().view(np.uint32)), "NaN included"


def test_every_value_comes_back() -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    values = np.empty(bits.shape, np.float32)
    widen(bits, values)
    ordinary = ~np.isnan(values)
    assert np.array_equal(narrow(values)[ordinary], bits[ordinary])


def test_rounding_is_torchs() -> None:
    """Any bits at all, and what lies on, just below and just above half a step."""
    random = np.random.default_rng(1)
    halves = (random.integers(0, 2**16, 20_000).astype(np.uint32) << 16) + 0x8000
    bits = np.concatenate((random.integers(0, 2**32, 200_000).astype(np.uint32), halves - 1, halves, halves + 1))
    values = bits.view(np.float32)
    got = torch.from_numpy(narrow(values)).view(torch.bfloat16).float()
    want = torch.from_numpy(values).bfloat16().float()
    assert torch.equal(got.isnan(), want.isnan())
    assert torch.equal(got.nan_to_num(7.0), want.nan_to_num(7.0))


def test_the_ends_of_the_range() -> None:
    largest = np.finfo(np.float32).max
    ends = np.array([[0.0, -0.0, np.inf, -np.inf, largest, -largest]], np.float32)
    assert narrow(ends).tolist() == [[0x0000, 0x8000, 0x7F80, 0xFF80, 0x7F80, 0xFF80]]
    payloads = np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32).view(np.float32)
    wide = np.empty(4, np.float32)
    widen(narrow(payloads), wide)
    assert np.isnan(wide).all()
