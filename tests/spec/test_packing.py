from __future__ import annotations

import numpy as np
import torch

from paceline.kernels.backend import load
from paceline.spec.packing import Packing


def test_what_is_packed_is_what_a_pass_takes() -> None:
    """A row x in, norm and product: [norm(x) . w] and its gated form."""
    ops = load()
    packing = Packing(ops, "f32", 1e-5)
    x, weight = np.array([[3.0, -4.0]], np.float32), np.array([[1.0, 2.0], [0.5, -1.0]], np.float32)
    scale = np.array([2.0, 1.0], np.float32)
    rows = torch.from_numpy(x)
    normed = x / np.sqrt((x**2).mean() + 1e-5) * scale
    plain = ops.linear(rows, packing.matrix(weight), norm=packing.norm(scale))
    assert np.allclose(ops.host(plain), normed @ weight.T)
    gate, up = (x @ weight.T)[0]
    gated = ops.linear(rows, packing.matrix(weight, gate=True), gate=True)
    assert np.allclose(ops.host(gated), gate / (1 + np.exp(-gate)) * up)
