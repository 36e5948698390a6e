"""Wiring: a checkpoint and a config in, a ready engine out."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from zlib import crc32

from paceline.kernels import backend
from paceline.kernels.backend import Ops
from paceline.kernels.linear import float_rows
from paceline.kernels.paging import BLOCK_SIZE
from paceline.spec.cost import StepCost, Work
from paceline.spec.drafters import Drafters
from paceline.spec.guard import Guard
from paceline.spec.heads import FinalNorm
from paceline.spec.planner import Planner
from paceline.spec.proposer import Proposer

from .acceptor import Acceptor
from .config import EngineConfig
from .device import choose_device
from .engine import Engine
from .errors import ConfigError
from .model.checkpoint import Checkpoint
from .model.decoder import Decoder, cache_shape
from .page_table import PageTable, blocks_for
from .request import Request
from .runner import Runner
from .scheduler import Scheduler
from .speculators import Ready, Speculator, Surroundings, Target, find_speculators

_log = logging.getLogger(__name__)

_DEFAULT_CPU_KV = 512 << 20
_DEFAULT_DEVICE_SHARE = 0.6  # of the memory left before the weights are loaded
# Rows of a pass -> how often it is timed. Between 16 and 64 rows time is linear, within 1 %. A pass of 64 takes as long
# as twelve of one row: timed once, it read 48 to 92 ms on two shared cores.
_MEASURED = {1: 3, 2: 3, 4: 3, 8: 3, 16: 2, 64: 2}
# Those timed again behind so many keys, which cost something for each row and something for all rows of a sequence.
_BEHIND_KEYS = (1, 8)
_KEYS = 512
# A prefill chunk beside running streams may stretch their step to this many times its cost without the chunk.
_STRETCH = 2.0


def choose_ops(config: EngineConfig, checkpoint: Checkpoint, device: str, cache: Path | None) -> Ops:
    """The backend asked for, or the best that can run this model here. Raises ConfigError."""
    native = device == "cpu" and config.backend in ("auto", "native")
    if config.backend == "native" and not native:
        raise ConfigError("--backend native runs on the CPU; use --device cpu with it, or --backend auto.")
    if native:
        store = None if cache is None else cache / "packed" / f"{crc32(checkpoint.fingerprint.encode()):08x}.bin"
        options = backend.Options(
            threads=config.threads,
            weights=config.weights,
            activations=config.activations,
            kv=config.kv_format,
            store=store,
            fingerprint=checkpoint.fingerprint,
        )
        try:
            ops = backend.load("native", options)
            ops.check(cache_shape(checkpoint.config))
        except backend.BackendError as error:
            if config.backend == "native":
                raise ConfigError(str(error)) from error
            reason = str(error)
            if not reason.split()[0].isupper():  # as a variable is
                reason = reason[0].lower() + reason[1:]
            _log.warning("Running on the slower torch kernels: %s", reason)
        else:
            return ops
    for option, value, usual in (
        ("weights", config.weights, "stored"),
        ("activations", config.activations, "mixed"),
        ("kv-format", config.kv_format, "f16"),
    ):
        if value != usual:
            raise ConfigError(f"--{option} {value} needs the native kernels; leave it at {usual} here.")
    name = "reference" if config.backend == "auto" else config.backend
    try:
        return backend.load(name, backend.Options(device=device, threads=config.threads))
    except backend.BackendError as error:
        raise ConfigError(str(error)) from error


def build_engine(
    checkpoint: Checkpoint,
    config: EngineConfig,
    *,
    proposers: Sequence[Proposer] | None = None,
    cost: StepCost | None = None,
    guard: Guard | None = None,
    cache: Path | None = None,
) -> Engine:
    """Load the weights, allocate the cache, measure what steps cost.

    proposers: drafters to use instead of those `config.speculator` names. cost: what to start from instead of
    measuring now. guard: what decides whether to draft at all. cache: folder in which packed weights wait for the
    next start. Raises ModelError for a checkpoint that cannot be loaded; ConfigError, before weights are packed, for
    options that do not fit the machine or the model.
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
    blocks, context_length = _size_cache(config, ops.free_memory(), ops.block_bytes(shape), wanted)
    taps = {speculator: weight for speculator in speculators if (weight := speculator.taps(ops))}
    decoder = Decoder(model, weights, ops, context_length=context_length, features=tuple(taps.values()))
    ops.finish()
    runner = Runner(decoder, ops.allocate(shape, blocks + spare), ops)
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
    pages = PageTable(blocks + spare, spare)
    return Engine(
        scheduler=Scheduler(
            pages,
            max_batch=config.max_batch,
            step_budget=config.step_budget,
            queue_limit=config.queue_limit,
            context_length=context_length,
            prefill_limit=partial(prefill_limit, cost),
            guess_limit=lambda request: guess_limit(drafters, config.max_nodes, request),
        ),
        pages=pages,
        runner=runner,
        acceptor=Acceptor(ops, context_length),
        drafters=drafters,
        planner=Planner(cost),
        guard=guard or Guard(),
        overlap=ops.asynchronous,
        context_length=context_length,
        vocab_size=model.vocab_size,
    )


def guess_limit(drafters: Drafters, max_nodes: int, request: Request) -> int:
    """Guesses per step a request may have: none where its mode never drafts."""
    if not drafters.drafts(request.speculation.mode):
        return 0
    return min(max_nodes, request.speculation.max_nodes) - 1


def prefill_limit(cost: StepCost, streams: Work, planned: Work, context: int, most: int) -> int:
    """Rows of a prompt, up to `most` behind `context` computed ones, that may join a step of `planned` without
    stretching it beyond what the running streams in it bear.
    """
    return cost.rows_within(_STRETCH * cost.ms(streams), planned, context, most)


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


def _size_cache(config: EngineConfig, device_free: int | None, block_bytes: int, wanted: int) -> tuple[int, int]:
    """(blocks, context length): a lone sequence of full context always fits, so nothing can wait forever.

    device_free: bytes left on a device that has memory of its own.
    """
    memory = config.kv_memory
    if memory is None:
        memory = _DEFAULT_CPU_KV if device_free is None else int(device_free * _DEFAULT_DEVICE_SHARE)
    blocks = memory // block_bytes
    if config.context_length is not None and blocks < blocks_for(wanted):
        raise ConfigError(
            f"A context of {wanted} tokens needs {_mib(blocks_for(wanted) * block_bytes)} for keys and values, but "
            f"--kv-memory allows {_mib(memory)}; raise --kv-memory or lower --context-length."
        )
    if blocks < 2:
        raise ConfigError(
            f"--kv-memory allows {_mib(memory)}, but two blocks of this model need {_mib(2 * block_bytes)}; raise it."
        )
    return min(blocks, config.max_batch * blocks_for(wanted)), min(wanted, blocks * BLOCK_SIZE)


def _mib(size: int) -> str:
    return f"{size / 2**20:.3g} MiB"
