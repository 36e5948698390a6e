"""Wiring: a checkpoint and a config in, a ready engine out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from paceline.kernels import backend
from paceline.kernels.kv_cache import CacheShape
from paceline.kernels.paging import BLOCK_SIZE
from paceline.spec.cost import CostCurve
from paceline.spec.drafters import AUTO, Drafters
from paceline.spec.ngram import NGram
from paceline.spec.nothing import Nothing
from paceline.spec.planner import Planner
from paceline.spec.proposer import Proposer

from .acceptor import Acceptor
from .config import EngineConfig
from .engine import Engine
from .errors import ConfigError
from .model.checkpoint import Checkpoint
from .model.decoder import Decoder, cache_shape
from .page_table import PageTable, blocks_for
from .request import Request
from .runner import Runner
from .scheduler import Scheduler

DRAFTERS: Mapping[str, Callable[[], Proposer]] = {NGram.name: NGram, Nothing.name: Nothing}
AUTO_DRAFTER = NGram.name

_DEFAULT_CPU_KV = 512 << 20
_DEFAULT_CUDA_SHARE = 0.6  # of the memory left once the weights are loaded
_MEASURED_ROWS = (1, 2, 4, 8, 16, 32, 64)
# A prefill chunk beside running streams may stretch their step to this many times its cost without the chunk.
_STRETCH = 2.0


def choose_device(name: str) -> torch.device:
    """Raises ConfigError for an unknown device, or for CUDA where there is none."""
    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"--device must be auto, cpu or cuda, got {name!r}.")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ConfigError("--device cuda was asked for, but torch sees no CUDA device; use --device cpu or auto.")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def build_engine(
    checkpoint: Checkpoint,
    config: EngineConfig,
    *,
    proposers: Sequence[Proposer] | None = None,
    cost: CostCurve | None = None,
) -> Engine:
    """Load the weights, allocate the cache, measure what steps cost.

    proposers: drafters to use instead of the one `config.speculator` names. cost: a curve to start from instead of
    measuring one now. Raises ModelError for a checkpoint that
    cannot be loaded, ConfigError for options that do not fit the machine or the model.
    """
    drafters = Drafters(proposers if proposers is not None else [_drafter(config.speculator)])
    device = choose_device(config.device)
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    ops = backend.load()
    model = checkpoint.config
    wanted = min(config.context_length or model.context_length, model.context_length)
    decoder = Decoder(model, checkpoint.load(device=device, dtype=dtype), ops, context_length=wanted)
    checkpoint.close()

    spare = config.max_batch * (blocks_for(config.max_nodes) + 1) if _guesses(drafters) else 0
    shape = cache_shape(model, dtype, device)
    blocks, context_length = _size_cache(config, shape, ops.block_bytes(shape), wanted)
    runner = Runner(decoder, ops.allocate(shape, blocks + spare), ops, device)
    if cost is None:
        measurable = [rows for rows in _MEASURED_ROWS if rows <= min(blocks * BLOCK_SIZE, wanted)]
        cost = CostCurve({rows: runner.measure(rows) for rows in measurable})
    pages = PageTable(blocks + spare, spare)
    return Engine(
        scheduler=Scheduler(
            pages,
            max_batch=config.max_batch,
            step_budget=config.step_budget,
            queue_limit=config.queue_limit,
            context_length=context_length,
            prefill_limit=lambda decoding, budget: prefill_limit(cost, decoding, budget),
            guess_limit=lambda request: guess_limit(drafters, config.max_nodes, request),
        ),
        pages=pages,
        runner=runner,
        acceptor=Acceptor(ops.sample, context_length),
        drafters=drafters,
        planner=Planner(cost),
        context_length=context_length,
        vocab_size=model.vocab_size,
    )


def _drafter(name: str) -> Proposer:
    chosen = AUTO_DRAFTER if name == AUTO else name
    if chosen not in DRAFTERS:
        raise ConfigError(f"There is no speculator {name!r}; choose one of {', '.join((AUTO, *DRAFTERS))}.")
    return DRAFTERS[chosen]()


def _guesses(drafters: Drafters) -> bool:
    return any(drafters.drafts(mode) for mode in drafters.modes)


def guess_limit(drafters: Drafters, max_nodes: int, request: Request) -> int:
    """Guesses per step a request may have: none where its mode never drafts."""
    if not drafters.drafts(request.speculation.mode):
        return 0
    return min(max_nodes, request.speculation.max_nodes) - 1


def prefill_limit(cost: CostCurve, decoding: int, budget: int) -> int:
    """Prefill rows that may join `decoding` running rows without stretching the step beyond what streams bear.

    At least one: a prompt makes progress in every step, whatever the curve says.
    """
    return max(1, cost.rows_within(_STRETCH * cost.cost(decoding), decoding + budget) - decoding)


def _size_cache(config: EngineConfig, shape: CacheShape, block_bytes: int, wanted: int) -> tuple[int, int]:
    """(blocks, context length): a lone sequence of full context always fits, so nothing can wait forever."""
    memory = config.kv_memory
    if memory is None:
        on_cuda = shape.device.type == "cuda"
        memory = int(torch.cuda.mem_get_info(shape.device)[0] * _DEFAULT_CUDA_SHARE) if on_cuda else _DEFAULT_CPU_KV
    blocks = memory // block_bytes
    if config.context_length is not None and blocks < blocks_for(wanted):
        raise ConfigError(
            f"A context of {wanted} tokens needs {blocks_for(wanted) * block_bytes >> 20} MiB for keys and values, but "
            f"--kv-memory allows {memory >> 20} MiB; raise --kv-memory or lower --context-length."
        )
    if blocks < 2:
        raise ConfigError(
            f"--kv-memory allows {memory} bytes, but two blocks of this model need {2 * block_bytes}; raise it."
        )
    return min(blocks, config.max_batch * blocks_for(wanted)), min(wanted, blocks * BLOCK_SIZE)
