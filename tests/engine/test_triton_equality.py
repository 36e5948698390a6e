"""Promise 1 on the Triton kernels, interpreted: the reference's replies; with guesses the bits of plain decoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from backends import ops_or_skip
from equality import SAMPLINGS, VOCAB, Oracle, Record, assert_equal, plain_replies, proposers, requests_for
from fakes import RandomCheckpoint, Replies, make_request, run, tiny_engine
from jobs import Job, chain, layout_of, new_slots, tables
from tiny_heads import heads_tensors, write_eagle, write_own, write_recurrent
from tiny_models import make_folder

from paceline.engine.model.decoder import Decoder, cache_shape
from paceline.engine.request import Request
from paceline.kernels.backend import Ops, Options, load
from paceline.kernels.batch import Batch

TRITON: dict[str, Any] = {"backend": "triton", "exact": True}
TOKENS = 5  # of a reply, about: a pass of the interpreter takes half a second
MIXED = ("greedy", "filtered")
PlainOf = Callable[[str], tuple[list[Request], Replies]]
SLOW = {1: 1e4, 100_000: 1e4}  # a machine whose steps take so long that any drafter is worth asking


def slow(*values: str) -> Any:
    """What takes the interpreter longest, and differs from the others least, is among the proofs."""
    return pytest.param(*values, marks=pytest.mark.proof)


@pytest.fixture(scope="module", autouse=True)
def triton() -> None:
    ops_or_skip("triton")
    import interpreter

    interpreter.hasten()


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB, head_dim=16)


def short(requests: list[Request]) -> list[Request]:
    limits = [replace(request.sampling, max_tokens=TOKENS + i) for i, request in enumerate(requests)]
    return [replace(request, sampling=limit) for request, limit in zip(requests, limits, strict=True)]


@pytest.fixture(scope="module")
def plain_of(checkpoint: RandomCheckpoint) -> PlainOf:
    """Requests of a sampling and their replies alone, without guesses, whole prompts at once."""

    @cache
    def make(sampling: str) -> tuple[list[Request], Replies]:
        requests = short(requests_for(SAMPLINGS[sampling], count=3))
        return requests, plain_replies(checkpoint, requests, **TRITON)

    return make


@pytest.mark.parametrize("sampling", MIXED)
def test_replies_are_those_of_the_reference(
    checkpoint: RandomCheckpoint, plain_of: PlainOf, sampling: str, record_property: Record
) -> None:
    requests, replies = plain_of(sampling)
    assert_equal(Oracle(checkpoint), requests, plain_replies(checkpoint, requests), replies, record_property)


@pytest.mark.parametrize(("name", "sampling"), [("random", "greedy"), slow("merged", "filtered")])
def test_trees_and_batch_mates_change_nothing(
    checkpoint: RandomCheckpoint, plain_of: PlainOf, name: str, sampling: str, record_property: Record
) -> None:
    requests, expected = plain_of(sampling)
    engine = tiny_engine(checkpoint, proposers(name, requests, expected), max_nodes=12, **TRITON)
    replies = run(engine, requests)
    assert_equal(None, requests, expected, replies, record_property)
    deltas = [delta for reply in replies.deltas.values() for delta in reply]
    assert sum(delta.accepted for delta in deltas) > 0


def test_preemption_and_chunks_change_nothing(checkpoint: RandomCheckpoint, record_property: Record) -> None:
    """Both need a third block, and there is none: what was decoded is computed again as a prompt, in other chunks."""
    requests = [make_request(f"r{i}", [(7 * i + j * j) % VOCAB for j in range(30 + i)], max_tokens=6) for i in range(2)]
    expected = plain_replies(checkpoint, requests, **TRITON)
    engine = tiny_engine(
        checkpoint, proposers("random", requests, expected), blocks=4, max_nodes=3, step_budget=24, **TRITON
    )
    assert_equal(None, requests, expected, run(engine, requests), record_property)
    assert engine.stats().preemptions > 0


@pytest.mark.parametrize(("weights", "kv"), [("q4", "int8"), ("f16", "f16")])
def test_formats_change_nothing_of_it(
    checkpoint: RandomCheckpoint, weights: str, kv: str, record_property: Record
) -> None:
    options = TRITON | {"weights": weights, "kv_format": kv}
    requests = short(requests_for({"temperature": 0.8}, count=2))
    plain = plain_replies(checkpoint, requests, **options)
    engine = tiny_engine(checkpoint, proposers("random", requests, plain), max_nodes=12, **options)
    assert_equal(None, requests, plain, run(engine, requests), record_property)


@pytest.mark.parametrize("name", ["recurrent", *map(slow, ("draft", "eagle", "hydra", "medusa"))])
def test_trained_drafters_change_nothing(
    checkpoint: RandomCheckpoint,
    plain_of: PlainOf,
    name: str,
    tmp_path: Path,
    record_property: Record,
) -> None:
    hidden, guessable = checkpoint.config.hidden_size, [*range(0, VOCAB, 2)]
    write = {
        "draft": lambda path: make_folder(path, "llama2", vocab_size=VOCAB),
        "eagle": lambda path: write_eagle(path, checkpoint.config),
        "hydra": lambda path: write_own(path, "PacelineHydra", heads_tensors(hidden, hydra=True)),
        "medusa": lambda path: write_own(path, "PacelineMedusa", heads_tensors(hidden, layers=2), guessable),
        "recurrent": lambda path: write_recurrent(path, checkpoint.config, guessable),
    }[name]
    requests, expected = plain_of("greedy")
    options = TRITON | {"cost": SLOW, "speculator": str(write(tmp_path / name)), "max_nodes": 8}
    replies = run(tiny_engine(checkpoint, None, **options), requests)
    assert_equal(None, requests, expected, replies, record_property)
    assert sum(delta.drafted for reply in replies.deltas.values() for delta in reply) > 0


class Bits:
    """The model on one cache, to be asked for the logits of any rows."""

    def __init__(self, ops: Ops, checkpoint: RandomCheckpoint) -> None:
        c = checkpoint.config
        self._decoder = Decoder(c, checkpoint.load(), ops, context_length=c.context_length)
        self._cache = ops.allocate(cache_shape(c), 40)

    def logits(self, jobs: list[Job], owned: list[list[int]], ids: list[int]) -> torch.Tensor:
        """[R, V] of all rows, which are stored."""
        rows = np.arange(len(ids))
        batch = Batch(
            ids=np.array(ids),
            positions=np.array([position for job in jobs for position in job.positions]),
            slots=np.array(new_slots(jobs, owned)),
            sampled=rows,
            layout=layout_of(jobs, owned),
        )
        logits: torch.Tensor = self._decoder.forward(batch, self._cache)[0]
        return logits.clone()


@pytest.mark.parametrize(("weights", "kv"), [("stored", "auto"), slow("q4", "int8")])
def test_bits_of_a_row_are_those_it_has_anywhere(checkpoint: RandomCheckpoint, weights: str, kv: str) -> None:
    """A node of a tree beside another sequence, the same token decoded step by step, and as the end of a prompt; across
    the border of two units of keys.
    """
    bits = Bits(load("triton", Options(weights=weights, kv=kv, exact=True)), checkpoint)
    rng, context, nodes = torch.Generator().manual_seed(20), 61, 7
    prompt, guesses = ([int(torch.randint(VOCAB, (), generator=rng)) for _ in range(n)] for n in (context, nodes))
    tree = Job(context, nodes, (-1, 0, 0, 1, 2, 4, 5))
    table, other, third = tables([Job(0, 80)] * 3, 40, rng)
    bits.logits([chain(0, context)], [table], prompt)
    bits.logits([chain(0, 30)], [other], prompt[:30])
    verified = bits.logits([chain(30, 1), tree], [other, table], [5, *guesses])[1:]
    for leaf in (3, 6):
        line = tree.line(leaf)
        text = [*prompt, *(guesses[node] for node in line)]
        whole = bits.logits([chain(0, len(text))], [third], text)
        assert torch.equal(verified[line], whole[context:])
        bits.logits([chain(0, context)], [third], prompt)
        for i, node in enumerate(line):
            alone = bits.logits([chain(context + i, 1)], [third], [guesses[node]])
            assert torch.equal(verified[node], alone[0])
