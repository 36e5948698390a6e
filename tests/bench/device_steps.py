"""Steps of a model of eight billion weights: passes under graphs, and an engine around them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from device_models import RandomModel, bushy, depths
from device_tools import NONE, Bar, Figure, Machine
from fakes import FLAT, Replies, Scripted, make_request

from paceline.engine.build import build_engine
from paceline.engine.config import EngineConfig
from paceline.engine.engine import Engine
from paceline.engine.model.decoder import Decoder, cache_shape
from paceline.engine.request import Delta, Request
from paceline.kernels.backend import Ops
from paceline.kernels.batch import Batch
from paceline.kernels.gpu.products import product
from paceline.kernels.paging import BLOCK_SIZE, slots_of
from paceline.kernels.sample import Draw
from paceline.spec.cost import StepCost
from paceline.spec.tree import TokenTree

_STREAMS = (1, 4, 8)
_ROWS = (1, 2, 4, 8, 16, 32, 64)
_ROOM = 80  # slots behind a context, for a tree
_TREE = 16


class Passes:
    """One decoder and the caches of some streams, each behind `context` computed tokens."""

    def __init__(self, checkpoint: RandomModel, ops: Ops, *, context: int, streams: int) -> None:
        c = checkpoint.config
        self.context, self._ops, self._vocab_size = context, ops, c.vocab_size
        self._decoder = Decoder(c, checkpoint.load(), ops, context_length=context + _ROOM)
        ops.finish()
        blocks = -(-(context + _ROOM) // BLOCK_SIZE)
        self._cache = ops.allocate(cache_shape(c), blocks * streams)
        order = np.random.default_rng(1).permutation(blocks * streams)
        self._tables: list[list[int]] = order.reshape(streams, blocks).tolist()

    def prefill(self, rows: int) -> Callable[[], object]:
        """A pass over a whole prompt that samples its last token."""
        return self._step([(0, TokenTree.chain(tuple(range(2, rows + 2))))], 0, last_only=True)

    def fill(self, chunk: int) -> None:
        """Compute the context of every stream."""
        for stream in range(len(self._tables)):
            for first in range(0, self.context, chunk):
                tokens = tuple(range(first, min(first + chunk, self.context)))
                self._step([(stream, TokenTree.chain(tokens))], first, last_only=True)()

    def step(self, streams: int, nodes: int) -> Callable[[], object]:
        """A decode step of trees: the pass, and a token chosen for every node."""
        tree = TokenTree(tuple(range(2, nodes + 2)), bushy(nodes))
        return self._step([(stream, tree) for stream in range(streams)], self.context, last_only=False)

    def _step(self, trees: Sequence[tuple[int, TokenTree]], context: int, *, last_only: bool) -> Callable[[], object]:
        starts = np.cumsum([0, *(len(tree) for _, tree in trees)]).tolist()
        batch = Batch.of(
            ids=[token % self._vocab_size for _, tree in trees for token in tree.tokens],
            positions=[context + depth for _, tree in trees for depth in depths(tree.parents)],
            slots=[slot for stream, tree in trees for slot in slots_of(self._tables[stream], context, len(tree))],
            sampled=[starts[-1] - 1] if last_only else [*range(starts[-1])],
            starts=starts,
            contexts=[context] * len(trees),
            tables=[self._tables[stream] for stream, _ in trees],
            causal=[tree.is_chain for _, tree in trees],
            ancestors=[word for _, tree in trees for word in ([0] * len(tree) if tree.is_chain else tree.ancestors)],
        )
        draws = [Draw(seed=0, position=0, temperature=0.0)] * len(batch.sampled)

        def run() -> object:
            logits = self._decoder.forward(batch, self._cache)[0]
            return self._ops.settle(logits, draws, batch, self._cache)

        return run


Guarded = Callable[[Iterator[Figure]], Iterator[Figure]]


def figures(
    machine: Machine, checkpoint: RandomModel, config: EngineConfig, load: Callable[[], Ops], guarded: Guarded
) -> Iterator[Figure]:
    """load: makes the ops of the backend in question. guarded: goes on behind a section that broke."""
    context = 6 if machine.interpreted else 2048
    alone: dict[int, float] = {}
    yield from guarded(_decoders(machine, checkpoint, load, alone, context, guarded))
    machine.release()
    config = replace(config, exact=False)
    yield from guarded(_engine(machine, checkpoint, config, alone.get(1, float("nan")), context))


def _decoders(
    machine: Machine,
    checkpoint: RandomModel,
    load: Callable[[], Ops],
    alone: dict[int, float],
    context: int,
    guarded: Guarded,
) -> Iterator[Figure]:
    """alone: is told the milliseconds of one stream's steps by rows."""
    start = time.perf_counter()
    ops = load()
    ops = replace(ops, pack=cache(ops.pack), pack_table=cache(ops.pack_table))  # two decoders, one set of weights
    passes = Passes(checkpoint, ops, context=context, streams=2 if machine.interpreted else _STREAMS[-1])
    machine.wait()
    yield Figure("weights packed and on the device", time.perf_counter() - start, "s")
    passes.fill(chunk=512)
    yield from guarded(_by_rows(machine, passes, alone))
    yield from guarded(_against_one_row(machine, checkpoint, alone, context))
    library = Passes(checkpoint, replace(ops, linear=product), context=context, streams=1)
    yield from _against_library(machine, passes, library)


def _by_rows(machine: Machine, passes: Passes, alone: dict[int, float]) -> Iterator[Figure]:
    for streams in (1, 2) if machine.interpreted else _STREAMS:
        for rows in (1, 4) if machine.interpreted else _ROWS:
            if rows >= streams and machine.left_s > 0:
                step = passes.step(streams, rows // streams)
                start = time.perf_counter()
                step()
                machine.wait()
                first = (time.perf_counter() - start) * 1e3
                ms = machine.stream_ms(step)
                yield Figure(f"step, {rows} rows, {streams} streams", ms, "ms")
                if streams == 1:
                    alone[rows] = ms
                    yield Figure(f"first step of {rows} rows: compiled and captured", first, "ms")


def _against_one_row(
    machine: Machine, checkpoint: RandomModel, alone: dict[int, float], context: int
) -> Iterator[Figure]:
    floor = checkpoint.pass_bytes / machine.copy_rate * 1e3
    behind = f"behind {context} tokens"
    yield Figure("bytes of the weights at the copy's rate", floor, "ms")
    yield Figure(f"step of 1 row {behind} against the weights' bytes", alone[1] / floor, "times", Bar(1.25))
    nodes = max(rows for rows in alone if rows <= _TREE)
    yield Figure(f"step of {nodes} nodes {behind} against 1 node", alone[nodes] / alone[1], "times", Bar(1.10))


def _against_library(machine: Machine, exact: Passes, library: Passes) -> Iterator[Figure]:
    """Passes whose products have one order for any number of rows, against the library's, which have several."""
    ways = [(f"step of {rows} rows", 4, [each.step(1, rows) for each in (exact, library)]) for rows in _small(machine)]
    prompts = (5,) if machine.interpreted else (512, 2048)
    ways += [(f"prefill of {rows} rows", 1, [each.prefill(rows) for each in (exact, library)]) for rows in prompts]
    for name, steps, (ours, theirs) in ways:
        if machine.left_s > 0:
            one, other = (machine.stream_ms(step, steps=steps, repeats=3) for step in (ours, theirs))
            yield Figure(f"{name}, exact", one, "ms")
            yield Figure(f"{name}, by the library's products", other, "ms")
            yield Figure(f"{name}, exact against the library's", one / other, "times", Bar(1.05))


def _small(machine: Machine) -> tuple[int, ...]:
    return (1,) if machine.interpreted else (1, _TREE, 64)


class _Clock:
    """Collects replies, and the time each delta was told at."""

    def __init__(self) -> None:
        self.replies = Replies()
        self.told: list[float] = []

    def __call__(self, deltas: list[Delta]) -> None:
        self.told += [time.perf_counter()] * len(deltas)
        self.replies(deltas)


def _engine(
    machine: Machine, checkpoint: RandomModel, config: EngineConfig, device_ms: float, context: int
) -> Iterator[Figure]:
    """device_ms: of a step of one row behind `context` tokens."""
    tokens = 3 if machine.interpreted else 96
    short = 5 if machine.interpreted else 512
    truth: dict[tuple[int, ...], list[int]] = {}
    drafter = Scripted("right", truth, checkpoint.config.vocab_size)
    start = time.perf_counter()
    fitted = replace(config, context_length=-(-(context + tokens + 1) // BLOCK_SIZE) * BLOCK_SIZE)
    cost = StepCost(FLAT) if machine.interpreted else None  # measured
    engine = build_engine(checkpoint, fitted, proposers=[drafter], cost=cost)
    yield Figure("start of the engine: packing, capturing, measuring", time.perf_counter() - start, "s")

    firsts = []
    for turn in range(2 if machine.interpreted else 6):
        began, clock = time.perf_counter(), _Clock()
        _run(engine, _request(checkpoint, f"first {turn}", short, 1, turn), clock)
        firsts.append((clock.told[0] - began) * 1e3)
    yield Figure(f"first token of a prompt of {short} tokens", statistics.median(firsts[1:]), "ms")

    plain = _request(checkpoint, "plain", context, tokens, 7)
    clock = _Clock()
    walls = _run(engine, plain, clock)
    wall = statistics.median(walls)
    yield Figure("engine step of 1 row, from end to end", wall, "ms")
    yield Figure("host gap in a step of 1 row", 100 * (wall - device_ms) / wall, "% of the step", Bar(3))
    yield Figure("plain, 1 stream", _rate(clock), "tokens/s")
    truth[plain.prompt] = clock.replies.tokens("plain")
    clock = _Clock()
    _run(engine, _request(checkpoint, "right", context, tokens, 7, mode="auto"), clock)
    differ = int(clock.replies.tokens("right") != truth[plain.prompt])
    yield Figure("with a drafter that is always right: replies that differ", differ, "of 1", NONE)
    yield Figure("with a drafter that is always right, 1 stream", _rate(clock), "tokens/s")
    yield Figure("its tokens per step", tokens / len(clock.told), "tokens")


def _request(checkpoint: RandomModel, name: str, length: int, tokens: int, seed: int, mode: str = "none") -> Request:
    prompt = np.random.default_rng(seed).integers(0, checkpoint.config.vocab_size, length).tolist()
    return make_request(name, prompt, mode=mode, max_tokens=tokens)


def _run(engine: Engine, request: Request, clock: _Clock) -> list[float]:
    """Milliseconds of each step that only decodes."""
    engine.pages.forget_prefixes()
    engine.submit(request)
    walls = []
    while engine.has_work:
        decoding = all(seq.is_decoding for seq in engine.scheduler.running) and not engine.scheduler.waiting
        start = time.perf_counter()
        engine.step(clock)
        if decoding:
            walls.append((time.perf_counter() - start) * 1e3)
    return walls


def _rate(clock: _Clock) -> float:
    """Tokens per second after the first ones."""
    (reply,) = clock.replies.deltas.values()
    tokens = sum(len(delta.tokens) for delta in reply[1:])
    return tokens / max(clock.told[-1] - clock.told[0], 1e-9)
