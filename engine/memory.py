"""How much of a machine's memory the model and its cache take, worked out before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paceline.kernels.backend import Ops
from paceline.kernels.paging import BLOCK_SIZE

from .config import EngineConfig
from .errors import ConfigError
from .model.weights import ModelWeights
from .page_table import blocks_for

_DEFAULT_CPU_KV = 512 << 20
_DEFAULT_DEVICE_SHARE = 0.8  # of what a device has left beside the weights; passes and drafters need some, too
_PASSES = 1 << 30  # what passes need beside weights and cache: logits, partial states, an unpacked weight


def memory_left(ops: Ops, weights: ModelWeights) -> int | None:
    """Bytes of a device's own memory that are left beside the weights; None where it shares the host's.

    Raises ConfigError where the weights alone are too much.
    """
    free = ops.free_memory()
    if free is None:
        return None
    matrices = [weights.embed, *([] if weights.lm_head is weights.embed else [weights.lm_head])]
    for layer in weights.layers:
        matrices += [layer.qkv, layer.out, layer.gate_up, layer.down]
    needed = sum(map(ops.packed_bytes, matrices))
    if needed + _PASSES > free:
        raise ConfigError(
            f"The model's weights and passes need {_mib(needed + _PASSES)} of the GPU's memory, and {_mib(free)} are "
            "free; use --weights q8 or q4, a smaller model, or --device cpu."
        )
    return free - needed - _PASSES


def size_cache(config: EngineConfig, device_free: int | None, block_bytes: int, wanted: int) -> tuple[int, int]:
    """(blocks, context length): a lone sequence of full context always fits, so nothing can wait forever.

    device_free: what `memory_left` says. wanted: tokens of the longest conversation. Raises ConfigError where too
    little is allowed, or there.
    """
    memory = config.kv_memory
    if memory is None:
        memory = _DEFAULT_CPU_KV if device_free is None else int(device_free * _DEFAULT_DEVICE_SHARE)
    elif device_free is not None and memory > device_free:
        raise ConfigError(
            f"--kv-memory asks for {_mib(memory)}, but the GPU has {_mib(device_free)} left beside the weights; "
            "lower it."
        )
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


@contextmanager
def enough_memory() -> Iterator[None]:
    """Raises ConfigError where a device has too little after all: drafters and large passes are not worked out."""
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # torch's, which may not be loaded
            raise
        raise ConfigError(
            "The GPU's memory ran out while the model was prepared; lower --kv-memory, --max-batch or --step-budget, "
            "or use --weights q8 or q4."
        ) from error


def _mib(size: int) -> str:
    return f"{size / 2**20:.3g} MiB" if size < 1 << 30 else f"{size / 2**30:.3g} GiB"
