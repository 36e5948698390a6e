"""A batch that does not fit its program raises, whatever is wrong with it, and leaves the program as good as before."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from jobs import Job, chain
from native_ops import ARRAYS, Program, batch_of, identity_rotation, pack
from numpy.typing import NDArray

from paceline.kernels.native.recorder import arrays

Arrays = dict[str, NDArray[Any]]


@pytest.fixture
def decoder(module: ModuleType) -> Callable[[], tuple[Program, Arrays]]:
    """A program with every op, and a batch that it runs: a chain of 5 after 20 keys and a tree of 4 after 14."""

    def make() -> tuple[Program, Arrays]:
        heads, head_dim, blocks = 1, 16, 6
        cache = module.Cache(module.KvFormat.f16, 1, blocks, heads, head_dim)
        program = Program(module, module.Pool(2))
        x = program.feed(np.ones((9, 3 * head_dim), np.float32))
        program.native.rope_store(x, cache, 0, identity_rotation(module, 40, head_dim), None, 0.0, None, 0.0)
        out = program.native.value(head_dim, False)
        program.native.attention(x, cache, 0, out)
        kept = program.native.value(head_dim, True)
        program.native.select(out, kept)
        program.linear(kept, pack(module, torch.ones(5, head_dim)), sampled=True)
        program.native.feed(program.native.value(7, False))
        jobs = [chain(20, 5), Job(14, 4, (-1, 0, 0, 2))]
        batch = batch_of(jobs, [[3, 0], [5, 2]], sampled=[4, 5, 8])
        fed = batch._replace(features=np.ones((9, 7), np.float32))
        return program, dict(zip(ARRAYS, arrays(fed), strict=True))

    return make


def put(name: str, index: int | tuple[int, int], value: int) -> Callable[[Arrays], None]:
    def change(batch: Arrays) -> None:
        batch[name] = batch[name].copy()
        batch[name][index] = value

    return change


def replace(name: str, change: Callable[[NDArray[Any]], Any]) -> Callable[[Arrays], None]:
    def apply(batch: Arrays) -> None:
        batch[name] = change(batch[name])

    return apply


FAR = 2**62
WRONG_BATCHES: dict[str, tuple[Callable[[Arrays], None], str]] = {
    **{
        f"{name} is {value}": (put(name, 3, value), message)
        for (name, message), value in itertools.product(
            {
                "ids": "a token id lies outside of the vocabulary",
                "positions": "position",
                "slots": "a slot lies outside of the cache",
            }.items(),
            (-1, 96, FAR, -FAR),
        )
    },
    "a position within the context is another one's": (put("positions", 3, 22), "position does not follow"),
    "a tree's position lies in its context": (put("positions", 7, 13), "position does not follow"),
    "a tree's position is too deep": (put("positions", 7, 17), "ancestors do not fit its position"),
    "sampled is negative": (put("sampled", 0, -1), "a sampled row does not exist"),
    "sampled is too large": (put("sampled", 2, 9), "a sampled row does not exist"),
    "row starts do not begin at 0": (put("row_starts", 0, 1), "row starts do not cover the rows"),
    "row starts end early": (put("row_starts", 2, 8), "row starts do not cover the rows"),
    "row starts end late": (put("row_starts", 2, 10), "row starts do not cover the rows"),
    "row starts leave the rows and come back": (put("row_starts", 1, 2**31 - 1), "row starts do not ascend"),
    "row starts are negative": (put("row_starts", 1, -5), "row starts do not ascend"),
    "a sequence has no rows": (put("row_starts", 1, 9), "row starts do not ascend"),
    "a context is negative": (put("context_lens", 0, -1), "a context is negative"),
    "a context is beyond its table": (put("context_lens", 0, 44), "a block table is shorter than its sequence"),
    "a context is enormous": (put("context_lens", 1, 2**31 - 1), "a block table is shorter than its sequence"),
    "a block is negative": (put("block_tables", (0, 1), -1), "a block outside of the cache"),
    "a block is too large": (put("block_tables", (1, 0), 6), "a block outside of the cache"),
    "a node without ancestors": (put("ancestors", 7, 0), "ancestors do not fit"),
    "a node that is not among its ancestors": (put("ancestors", 7, 0b0011), "ancestors do not fit"),
    "a node with a descendant among its ancestors": (put("ancestors", 6, 0b1001), "ancestors do not fit"),
    "ancestors beyond the tree": (put("ancestors", 7, -1), "ancestors do not fit"),
    "a tree of 65": (
        lambda batch: batch.update(
            {name: np.resize(batch[name], 65) for name in ("ids", "positions", "slots", "ancestors")},
            row_starts=np.array([0, 65], np.int32),
            context_lens=np.zeros(1, np.int32),
            block_tables=np.zeros((1, 5), np.int32),
            causal=np.zeros(1, bool),
            features=np.ones((65, 7), np.float32),
        ),
        "more than 64 nodes",
    ),
    "no rows at all": (
        lambda batch: batch.update(
            {name: batch[name][:0] for name in ("ids", "positions", "slots", "sampled", "ancestors")},
            row_starts=np.zeros(1, np.int32),
            context_lens=np.zeros(0, np.int32),
            block_tables=np.zeros((0, 2), np.int32),
            causal=np.zeros(0, bool),
        ),
        "at least one sequence",
    ),
    "row starts are empty": (replace("row_starts", lambda a: a[:0]), "at least one sequence"),
    "a sequence too few in block_tables": (replace("block_tables", lambda a: a[:1]), "one row per sequence"),
    "tables in one dimension": (replace("block_tables", lambda a: a[0]), "block_tables must have 2 dimensions"),
    "features of fewer rows": (replace("features", lambda a: a[:-1]), "features must have one row per id"),
    "features of another width": (replace("features", lambda a: a[:, :6].copy()), "do not have the width"),
    "features of no width": (replace("features", lambda a: a[:, :0].copy()), "do not have the width"),
    "features in one dimension": (replace("features", lambda a: a[0]), "features must have 2 dimensions"),
    "no features": (replace("features", lambda a: None), "this pass reads features and the batch has none"),
    "ids in two dimensions": (replace("ids", lambda a: a[None]), "ids must have 1 dimensions"),
    **{
        f"{name} is too short": (replace(name, lambda a: a[:-1].copy()), f"{name} must have [0-9]+ entries")
        for name in ("positions", "slots", "context_lens", "causal", "ancestors")
    },
    "ids out of step in memory": (
        replace("ids", lambda a: np.frombuffer(b"\0" + a.tobytes() + b"\0" * 7, np.uint8)[1:-7].view(np.int64)),
        "ids must be aligned in memory",
    ),
}


@pytest.mark.parametrize("case", WRONG_BATCHES)
def test_a_wrong_batch_is_an_error(decoder: Callable[[], tuple[Program, Arrays]], case: str) -> None:
    program, batch = decoder()
    before = tuple(batch.values())
    change, message = WRONG_BATCHES[case]
    change(batch)
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            program.native.run(tuple(batch.values()), 0, len(program.native), 1)
        program.native.run(before, 0, len(program.native), 1)  # and the program is as good as before


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("wrong", ["dtype", "byte order", "stride", "list", "None"])
def test_an_array_of_another_kind_is_an_error(
    decoder: Callable[[], tuple[Program, Arrays]], name: str, wrong: str
) -> None:
    program, batch = decoder()
    array = batch[name]
    if wrong == "byte order" and array.dtype.itemsize == 1:
        pytest.skip("a byte has no order")
    if wrong == "None" and name == "features":
        pytest.skip("a batch need not have any")
    batch[name] = {
        "dtype": lambda: array.astype(np.float64),
        "byte order": lambda: array.astype(array.dtype.newbyteorder()),
        "stride": lambda: np.repeat(array, 2, axis=-1)[..., ::2],
        "list": lambda: array.tolist(),
        "None": lambda: None,
    }[wrong]()
    with pytest.raises(TypeError, match=rf"{name} must be a contiguous array of (u?int|bool|float)"):
        program.native.run(tuple(batch.values()), 0, len(program.native), 1)


def test_ops_that_do_not_exist_are_an_error(decoder: Callable[[], tuple[Program, Arrays]]) -> None:
    program, batch = decoder()
    count = len(program.native)
    for begin, end, repeats in ((0, count + 1, 1), (count + 1, count + 1, 1), (3, 2, 1), (0, count, 0), (0, count, -1)):
        with pytest.raises(ValueError, match="there are no such ops"):
            program.native.run(tuple(batch.values()), begin, end, repeats)
    with pytest.raises(ValueError, match="ten arrays"):
        program.native.run(tuple(batch.values())[:-1], 0, count, 1)
    assert program.native.run(tuple(batch.values()), 2, 2, 1) >= 0


def test_values_are_read_within_what_a_run_left(decoder: Callable[[], tuple[Program, Arrays]]) -> None:
    program, batch = decoder()
    with pytest.raises(ValueError, match="no such rows"):
        program.native.view(0, 1)  # nothing has run
    program.native.run(tuple(batch.values()), 0, len(program.native), 1)
    assert program.native.view(0, 9).shape == (9, 48)
    for value, rows, message in ((0, 10, "no such rows"), (0, -1, "no such rows"), (99, 1, "no such value")):
        with pytest.raises(ValueError, match=message):
            program.native.view(value, rows)
    with pytest.raises(ValueError, match="no such value"):
        program.native.view(-1, 1)
