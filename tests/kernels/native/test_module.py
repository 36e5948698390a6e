"""What reaches the compiled module is checked: a wrong type, size, order or number raises and never crashes."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from native_ops import FORMATS, identity_rotation, pack

FAR = 2**62


def test_ops_that_do_not_fit_each_other_are_an_error(module: ModuleType) -> None:
    """Each would write or read beyond the end of something, were it recorded."""
    native = module.Program(module.Pool(1), 4.0)
    x, narrow, few = native.value(48, False), native.value(16, False), native.value(16, True)
    square, gated = pack(module, torch.ones(16, 16)).handle, pack(module, torch.ones(32, 16), gate=True).handle
    biased = pack(module, torch.ones(32, 16), bias=np.ones(32, np.float32)).handle
    cache, rotation = module.Cache(module.KvFormat.f16, 2, 4, 1, 16), identity_rotation(module, 8, 16)
    other_rotation = identity_rotation(module, 8, 32)
    wide = module.Cache(module.KvFormat.f16, 1, 4, 2, 16)
    out = native.value(16, False)
    none = (None, 0.0)
    wrong: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
        (native.value, (0, False), "at least one column"),
        (native.value, (-3, False), "at least one column"),
        (native.embed, (square, x), "the output has width 48 where 16 is needed"),
        (native.embed, (square, few), "the output must have all rows"),
        (native.embed, (square, 77), "no such value"),
        (native.select, (narrow, out), "the output must have the sampled rows"),
        (native.select, (few, few), "the input must have all rows"),
        (native.select, (x, few), "the output has width 16 where 48 is needed"),
        (native.feed, (few,), "the output must have all rows"),
        (native.feed, (77,), "no such value"),
        (native.linear, (narrow, gated, *none, -1, True, True, out), "a gated result has no silu of its own"),
        (native.linear, (x, square, *none, -1, False, False, out), "the input has width 48 where 16 is needed"),
        (native.linear, (narrow, square, *none, -1, False, False, x), "width"),
        (native.linear, (narrow, square, *none, -1, False, False, few), "the output must have all rows"),
        (native.linear, (few, square, *none, -1, False, False, out), "the output must have the sampled rows"),
        (native.linear, (narrow, square, *none, -1, False, False, narrow), "the output must not be the input"),
        (native.linear, (narrow, square, *none, x, False, False, out), "the residual has width 48 where 16 is needed"),
        (native.linear, (narrow, square, *none, few, False, False, out), "the residual must have all rows"),
        (native.linear, (narrow, square, *none, 99, False, False, out), "no such value"),
        (
            native.linear,
            (narrow, square, np.ones(15, np.float32), 0.0, -1, False, False, out),
            "norm must have 16 entries",
        ),
        (native.linear, (narrow, square, *none, -1, True, False, out), "the output's width does not fit the weight"),
        (native.linear, (narrow, gated, *none, -1, True, False, x), "the output's width does not fit the weight"),
        (native.linear, (narrow, biased, *none, -1, True, False, out), "a gated weight has no bias"),
        (native.rope_store, (narrow, cache, 0, rotation, *none, *none), "does not fit the cache's heads"),
        (native.rope_store, (x, wide, 0, rotation, *none, *none), "does not fit the cache's heads"),
        (native.rope_store, (x, cache, 2, rotation, *none, *none), "no such layer"),
        (native.rope_store, (x, cache, -1, rotation, *none, *none), "no such layer"),
        (native.rope_store, (x, cache, 0, other_rotation, *none, *none), "angles do not fit the head size"),
        (native.rope_store, (x, cache, 0, rotation, np.ones(8, np.float32), 0.0, *none), "norm must have 16 entries"),
        (native.attention, (narrow, cache, 0, out), "does not fit the cache's heads"),
        (native.attention, (x, cache, 2, out), "no such layer"),
        (native.attention, (x, cache, 0, few), "the output must have all rows"),
        (native.attention, (x, cache, 0, native.value(32, False)), "the output has width 32 where 16 is needed"),
        (native.attention, (native.value(48, True), cache, 0, out), "the projection must have all rows"),
    ]
    for call, arguments, message in wrong:
        with pytest.raises(ValueError, match=message):
            call(*arguments)
    missing: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (module.Program, (None, 4.0)),
        (native.embed, (None, out)),
        (native.linear, (narrow, None, *none, -1, False, False, out)),
        (native.rope_store, (x, None, 0, rotation, *none, *none)),
        (native.rope_store, (x, cache, 0, None, *none, *none)),
        (native.attention, (x, None, 0, out)),
    ]
    for call, arguments in missing:
        with pytest.raises(TypeError, match="must not be None"):
            call(*arguments)
    assert len(native) == 0
    native.feed(narrow)
    native.feed(out)
    with pytest.raises(ValueError, match="features of one width"):
        native.feed(x)
    assert len(native) == 2
    for outlier in (-1.0, np.nan):
        with pytest.raises(ValueError, match="outlier must not be negative"):
            module.Program(module.Pool(1), outlier)


@pytest.mark.parametrize("fmt", FORMATS)
def test_weights_that_do_not_fit_are_an_error(module: ModuleType, fmt: str) -> None:
    kind = getattr(module.Format, fmt)
    size = module.packed_bytes(kind, 20, 40)
    memory = np.zeros(size + 128, np.uint8)
    start = -memory.ctypes.data % 64
    data = memory[start : start + size]
    weight = module.Weight(kind, 20, 40, data, None)
    assert (weight.outputs, weight.inputs) == (20, 40)
    bias = np.zeros(20, np.float32)
    for arguments, message in (
        ((20, 40, data[:-1], None), f"data must have {size} entries"),
        ((2000, 40, data, None), "data must have [0-9]+ entries"),
        ((20, 4000, data, None), "data must have [0-9]+ entries"),
        ((0, 40, data, None), "between 1 and"),
        ((20, -1, data, None), "between 1 and"),
        ((2**31 - 1, 40, data, None), "between 1 and"),
        ((20, 2**31 - 1, data, None), "between 1 and"),
        ((20, 40, memory[start + 1 : start + 1 + size], None), "must start at a cache line"),
        ((20, 40, data, bias[:-1]), "bias must have 20 entries"),
    ):
        with pytest.raises(ValueError, match=message):
            module.Weight(kind, *arguments)
    for arguments in (
        (20, 40, data.astype(np.int8), None),
        (20, 40, None, None),
        (20, 40, data, bias.astype(np.float64)),
    ):
        with pytest.raises(TypeError, match="must be a contiguous array"):
            module.Weight(kind, *arguments)
    for first, count in ((-1, 1), (0, 33), (20, 1), (2**31 - 1, 2**31 - 1), (0, -1)):
        with pytest.raises(ValueError, match="rows do not exist"):
            module.unpack(weight, first, count)


def test_unknown_kinds_are_an_error(module: ModuleType) -> None:
    data = np.zeros(1 << 16, np.uint8)
    rows = np.zeros((1, 128), np.uint8)
    for call in (
        lambda: module.packed_bytes(module.Format(99), 1, 32),
        lambda: module.Weight(module.Format(-1), 1, 32, data, None),
        lambda: module.pack(module.Format(99), module.Source.f32, rows, 32, 0, module.Part.whole, data),
        lambda: module.pack(module.Format.f32, module.Source(99), rows, 32, 0, module.Part.whole, data),
        lambda: module.Cache(module.KvFormat(7), 1, 1, 1, 16),
    ):
        with pytest.raises(ValueError, match=r"unknown|cannot be packed"):
            call()
    with pytest.raises(TypeError):
        module.packed_bytes(4, 1, 32)


def test_rows_that_do_not_fit_are_not_packed(module: ModuleType) -> None:
    formats, sources, whole = module.Format, module.Source, module.Part.whole
    out = np.zeros(module.packed_bytes(formats.q4, 16, 64), np.uint8)
    rows = np.zeros((2, 40), np.uint8)  # Q4_1, 64 inputs
    module.pack(formats.q4, sources.q4_1, rows, 64, 0, whole, out)
    outputs = 32  # a block's
    frozen = out.copy()
    frozen.flags.writeable = False
    for arguments, message in (
        ((formats.q8, sources.q4_1, rows, 64, 0, whole, out), "cannot be packed"),
        ((formats.q4, sources.q4_0, rows, 64, 0, whole, out), "bytes this source"),
        ((formats.q4, sources.q4_1, rows, 65, 0, whole, out), "multiple of 32"),
        ((formats.q4, sources.q4_1, rows, 64, -1, whole, out), "do not fit"),
        ((formats.q4, sources.q4_1, rows, 64, outputs - 1, whole, out), "do not fit"),
        ((formats.q4, sources.q4_1, rows, 64, 2**31 - 2, whole, out), "do not fit"),
        ((formats.q4, sources.q4_1, rows[:0], 64, 0, whole, out), "do not fit"),
        ((formats.q4, sources.q4_1, rows, 64, 0, whole, out[:-1]), "do not fit"),
        ((formats.q4, sources.q4_1, rows, 64, 0, whole, frozen), "not writeable"),
    ):
        with pytest.raises(ValueError, match=message):
            module.pack(*arguments)
    with pytest.raises(TypeError, match="rows must be a contiguous array of uint8"):
        module.pack(formats.q4, sources.q4_1, rows[:, ::2], 64, 0, whole, out)


def test_caches_pools_and_rotations_of_impossible_sizes_are_an_error(module: ModuleType) -> None:
    f16 = module.KvFormat.f16
    sizes = [(0, 1, 1, 16), (1, 0, 1, 16), (1, 1, 0, 16), (1, 1, 1, 0), (1, 1, 1, 8), (1, 1, 1, 24), (1, -1, 1, 16)]
    for size in sizes:
        with pytest.raises(ValueError, match="multiple of 16"):
            module.Cache(f16, *size)
    # Products that wrap around would allocate little and promise much.
    for size in ((1, 2**54 + 1, 1, 16), (2**31 - 1, 2**62, 1, 16), (1, 1, 2**30, 16), (1, 1, 1, 2**30)):
        with pytest.raises(ValueError, match="cannot be this large"):
            module.Cache(f16, *size)
    with pytest.raises(MemoryError):
        module.Cache(f16, 1, 2**50, 1, 16)
    for threads in (0, -1, 1025):
        with pytest.raises(ValueError, match="between 1 and 1024"):
            module.Pool(threads)
    with pytest.raises(ValueError, match="sin must have 4 entries"):
        module.Rotation(np.ones(4, np.float32), np.ones(3, np.float32), 1)
    with pytest.raises(TypeError, match="cos must be"):
        module.Rotation(np.ones(4), np.ones(4), 1)
    with pytest.raises(ValueError, match="angle per position"):
        module.Rotation(np.zeros(0, np.float32), np.zeros(0, np.float32), 1 << 61)


def test_moves_outside_of_the_cache_are_an_error(module: ModuleType) -> None:
    cache = module.Cache(module.KvFormat.int8, 1, 2, 1, 16)
    good = np.array([0, 31])
    cache.move(good, good)
    for bad in (-1, 32, FAR):
        for source, target in ((np.array([0, bad]), good), (good, np.array([bad, 0]))):
            with pytest.raises(ValueError, match="a slot lies outside of the cache"):
                cache.move(source, target)
    with pytest.raises(ValueError, match="target must have 2 entries"):
        cache.move(good, good[:1])
    with pytest.raises(TypeError, match="source must be"):
        cache.move(good.astype(np.int32), good)


def test_logits_and_draws_that_do_not_fit_are_an_error(module: ModuleType) -> None:
    draw = (0, 0, 1.0, 0, 1.0, 0.0)
    for logits in (np.zeros((2, 4), np.float32), np.zeros((1, 0), np.float32), np.zeros(4, np.float32)):
        with pytest.raises(ValueError, match=r"one row per draw|2 dimensions"):
            module.sample(logits, [draw])
    with pytest.raises(TypeError, match="logits must be"):
        module.sample(np.zeros((1, 4)), [draw])
    for wrong in ((-1, *draw[1:]), (0, 2**64, *draw[2:]), draw[:-1], ("a", *draw[1:])):
        with pytest.raises(TypeError):
            module.sample(np.zeros((1, 4), np.float32), [wrong])


@pytest.mark.parametrize("filters", [(0, 1.0, 0.0), (3, 1.0, 0.0), (0, 0.9, 0.0), (0, 1.0, 0.1), (50, 0.5, 0.2)])
def test_broken_logits_still_give_a_token(module: ModuleType, filters: tuple[int, float, float]) -> None:
    """NaN and infinities in any number: orders that contradict themselves would run a sort off its array."""
    random = np.random.default_rng(0)
    for share in (0.1, 0.5, 1.0):
        for value in (np.nan, np.inf, -np.inf):
            logits = random.standard_normal((1, 3000), np.float32)
            logits[random.random(logits.shape) < share] = value
            for temperature in (0.0, 1e-30, 1.0, np.inf, np.nan):
                (token,) = module.sample(logits, [(1, 2, temperature, *filters)])
                assert 0 <= token < 3000
