"""Wiring: a checkpoint and a config in, a ready engine out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from paceline.kernels.linear import float_rows
from paceline.kernels.paging import BLOCK_SIZE
from paceline.spec.cost import StepCost, Work
from paceline.spec.drafters import Drafters
from paceline.spec.guard import Guard
from paceline.spec.heads import FinalNorm
from paceline.spec.latency import bearable
from paceline.spec.planner import Planner
from paceline.spec.proposer import Proposer

from .acceptor import Acceptor
from .backends import choose_ops
from .config import EngineConfig
from .device import choose_device
from .engine import Engine
from .errors import ConfigError
from .memory import enough_memory, memory_left, size_cache
from .model.checkpoint import Checkpoint
from .model.decoder import Decoder, cache_shape
from .page_table import PageTable, blocks_for
from .rehearsal import rehearse
from .request import Request
from .runner import Runner
from .scheduler import Scheduler
from .speculators import Ready, Speculator, Surroundings, Target, find_speculators

# Rows of a pass -> how often it is timed. Between 16 and 64 rows time is linear, within 1 %. A pass of 64 takes as long
# as twelve of one row: timed once, it read 48 to 92 ms on two shared cores.
_MEASURED = {1: 3, 2: 3, 4: 3, 8: 3, 16: 2, 64: 2}
# Those timed again behind so many keys, which cost something for each row and something for all rows of a sequence.
_BEHIND_KEYS = (1, 8)
_KEYS = 512
# What rows of a rehearsal are said to cost: so much that drafting always pays, and as much for many as for one.
_REHEARSED = {1: 1e6, 1024: 1e6}


@enough_memory()
def build_engine(
    checkpoint: Checkpoint,
    config: EngineConfig,
    *,
    proposers: Sequence[Proposer] | None = None,
    cost: StepCost | None = None,
    guard: Guard | None = None,
    cache: Path | None = None,
    report: Callable[[float], None] = lambda share: None,
) -> Engine:
    """Load the weights, allocate the cache, measure what steps cost.

    proposers: drafters to use instead of those `config.speculator` names. cost: what to start from instead of
    measuring now. guard: what decides whether to draft at all. cache: folder in which packed weights wait for the
    next start. report: is told the share of the passes that is prepared, where that takes time. Raises ModelError for
    a checkpoint that cannot be loaded; ConfigError, before weights are packed, for options that do not fit the machine
    or the model.
    """
    model = checkpoint.config
    wanted = config.context_length or model.context_length
    if wanted > model.context_length:
        raise ConfigError(
            f"--context-length is {wanted}, but this model was made for {model.context_length} tokens; lower it."
        )
    ops = choose_ops(config, checkpoint, choose_device(config.device), cache)
    shape = cache_shape(model)
    weights = checkpoint.load()
    if proposers is not None:
        speculators: list[Speculator] = [Ready(proposer) for proposer in proposers]
    else:
        speculators = find_speculators(config.speculator, Target(model, weights, ops, checkpoint.text, cache))
    spare = config.max_batch * (blocks_for(config.max_nodes) + 1) if speculators else 0
    blocks, context_length = size_cache(config, memory_left(ops, weights), ops.block_bytes(shape), wanted)
    taps = {speculator: weight for speculator in speculators if (weight := speculator.taps(ops))}
    decoder = Decoder(model, weights, ops, context_length=context_length, features=tuple(taps.values()))
    ops.finish()
    runner = Runner(decoder, ops.allocate(shape, blocks + spare), ops)
    runner.warm(config.step_budget, context_length, report)
    if cost is None:
        cost = _measured_cost(runner, min(blocks * BLOCK_SIZE, wanted))
    drafters = Drafters(
        [
            speculator.build(
                Surroundings(
                    ops=ops,
                    decoder=decoder,
                    head_rows=partial(float_rows, weights.lm_head),
                    norm=FinalNorm(weights.norm, model.rms_norm_eps),
                    blocks=blocks + spare,
                    context_length=context_length,
                    index=list(taps).index(speculator) if speculator in taps else -1,
                    token_ms=lambda: cost.token_ms,
                )
            )
            for speculator in speculators
        ]
    )
    checkpoint.close()

    def assembled(cost: StepCost, guard: Guard) -> Engine:
        pages = PageTable(blocks + spare, spare)
        return Engine(
            scheduler=Scheduler(
                pages,
                max_batch=config.max_batch,
                step_budget=config.step_budget,
                queue_limit=config.queue_limit,
                context_length=context_length,
                row_limit=partial(row_limit, cost),
                guess_limit=lambda request: guess_limit(drafters, config.max_nodes, request),
            ),
            pages=pages,
            runner=runner,
            acceptor=Acceptor(ops, context_length),
            drafters=drafters,
            planner=Planner(cost),
            guard=guard,
            overlap=ops.asynchronous,
            context_length=context_length,
            vocab_size=model.vocab_size,
        )

    if ops.sizes and proposers is None:
        streams = [count for count in ops.sizes if count <= config.max_batch]
        rehearse(assembled(StepCost(_REHEARSED), Guard()), streams, drafters.restart)
    return assembled(cost, guard or Guard())


def guess_limit(drafters: Drafters, max_nodes: int, request: Request) -> int:
    """Guesses per step a request may have: none where its mode never drafts."""
    if not drafters.drafts(request.speculation.mode):
        return 0
    return min(max_nodes, request.speculation.max_nodes) - 1


def row_limit(cost: StepCost, streams: Mapping[int, Work], rank: int, planned: Work, context: int, most: int) -> int:
    """Rows of a sequence of class `rank`, up to `most` behind `context` computed ones, that may join a step of
    `planned` without stretching it beyond what the classes that stream in it bear.
    """
    own_ms = {each: cost.ms(work) for each, work in streams.items()}
    return cost.rows_within(bearable(own_ms, rank), planned, context, most)


def _measured_cost(runner: Runner, most: int) -> StepCost:
    """most: rows that the cache and the model's context hold."""
    keys = min(_KEYS, (most - max(_BEHIND_KEYS)) // BLOCK_SIZE * BLOCK_SIZE)
    points: dict[int, float] = {}
    behind: dict[int, float] = {}

    def add(to: dict[int, float], rows: int, context: int) -> None:
        to[rows] = min(runner.measure(rows, context), to.get(rows, float("inf")))  # disturbances only ever add time

    # Round by round: whatever holds the machine up for a while spoils one time of each point and not all of one.
    for turn in range(max(_MEASURED.values())):
        for rows in (rows for rows, times in _MEASURED.items() if turn < times and rows <= most):
            add(points, rows, 0)
            if rows in _BEHIND_KEYS and keys > 0:
                add(behind, rows, keys)
    return StepCost.measured(points, keys, behind) if behind else StepCost(points)
