"""Kernels to compile: one that is well, and one for each way in which a kernel is not."""

from __future__ import annotations

import triton
import triton.language as tl

from paceline.kernels.gpu.variant import TARGETS, Variant

BLOCK = 64


@triton.jit
def product(x, w, y, width, BLOCK: tl.constexpr, bias):  # noqa: N803
    """x [BLOCK, width] times w [BLOCK, width] transposed: a block of numbers, by tensor cores."""
    m, n, k = tl.arange(0, BLOCK), tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, width, BLOCK):
        left = tl.load(x + m[:, None] * width + start + k[None, :])
        right = tl.load(w + n[None, :] * width + start + k[:, None])
        sums = tl.dot(left, right, sums)
    if bias is not None:
        sums += tl.load(bias + n)[None, :]
    tl.store(y + m[:, None] * BLOCK + n[None, :], sums)


@triton.jit
def centred(x, y, COUNT: tl.constexpr):  # noqa: N803
    """All of x stays in registers until its mean is known, however many that takes."""
    index = tl.arange(0, COUNT)
    values = tl.load(x + index)
    tl.store(y + index, values - tl.sum(values) / COUNT)


@triton.jit
def _vector_for_number(y):
    tl.store(y, tl.arange(0, 16))


@triton.jit
def calls_what_is_refused(y):
    _vector_for_number(y)


def well(name: str = "well", *, stages: int = 2, targets: tuple[str, ...] = TARGETS) -> Variant:
    return Variant(
        name,
        product,
        types={"x": "*bf16", "w": "*bf16", "y": "*fp32", "width": "i32"},
        constants={"BLOCK": BLOCK, "bias": None},
        aligned=("x", "w", "y", "width"),
        num_stages=stages,
        targets=targets,
    )


def too_much_shared() -> Variant:
    return well("too much shared", stages=24, targets=("sm_80",))


def spilling() -> Variant:
    return Variant("spilling", centred, {"x": "*fp32", "y": "*fp32"}, {"COUNT": 2**14}, num_warps=1, targets=("sm_90",))


def refused() -> Variant:
    return Variant("refused", calls_what_is_refused, {"y": "*i32"}, {}, targets=("gfx942",))
