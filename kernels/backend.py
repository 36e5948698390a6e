"""Choose the ops once per process: one frozen table, asked for by name or picked for the machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .batch import Batch
from .embed import Embed, PackTable, TiedHead
from .feed import Feed
from .fill import Fill
from .join import Join
from .kv_cache import Allocate, BlockBytes, Cache, CacheShape
from .linear import Activation, Linear, MakeConstant, Matrix, Pack
from .move_kv import MoveKV
from .rank import Rank, RankRows
from .rope_store import RopeStore
from .sample import Host, Sample
from .select import Select
from .settle import Settle
from .tree_attention import Prepare, TreeAttention

# (logits [M, V], hidden [M, H], *more): what was computed of the sampled rows has M rows, the rest R.
Pass = Callable[[Batch, Cache], tuple[Activation, ...]]
Compile = Callable[[Callable[[Any, Cache], Any]], Pass]


WEIGHTS = ("stored", "q4", "q4_128", "q8", "q8_128", "bf16", "f16", "f32")
ACTIVATIONS = ("mixed", "int8", "int16")
KV_FORMATS = ("auto", "f16", "bf16", "int8", "fp8")


class BackendError(Exception):
    """A backend that was asked for by name and cannot run here; the text is one sentence for a person."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a backend may be told. The reference has one format of everything.

    device: "cpu" or "cuda". weights: one of WEIGHTS; "stored" keeps every value a checkpoint holds, floats rounded to
    what a GPU computes in. activations: one of ACTIVATIONS, what the native products with quantised weights read;
    "mixed" is 8 bits, but outliers stay floats. kv: one of KV_FORMATS, "auto" for 16-bit floats. exact: prompts are
    computed in the order of summation that single tokens are, as the native backend always does. store: a file that
    keeps packed weights for the next start, valid for one `fingerprint` of the model.
    """

    device: str = "cpu"
    threads: int | None = None
    weights: str = "stored"
    activations: str = "mixed"
    kv: str = "auto"
    exact: bool = False
    store: Path | None = None
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Guessing:
    """What lets a pass go on from its own guesses, without the host."""

    rank: RankRows
    join: Join
    fill: Fill


@dataclass(frozen=True, slots=True)
class Ops:
    """Every op of a step, all from one backend: results of different backends are never mixed.

    What goes into a pass is host arrays; what comes out is the backend's own, read through `sample`, `settle` and
    `host`.

    asynchronous: a pass returns before it has been computed: the host may do something else meanwhile.
    compile: makes a pass of a function that calls ops on a batch and a cache. The batch it is given has the fields of
    `Batch` as the backend wants them. A backend may run the function each time, or once, to record what it calls. The
    function returns activations: logits first, then any others; those of a pass are valid until its next call.
    guessing: None on a backend where the host has what it needs between two passes at hand.
    check: raises BackendError for a model that the kernels do not fit. free_memory: bytes left on a device of the
    backend's own; None where it shares the host's. packed_bytes: what `pack` will take of them. sizes: rows of passes
    that a start runs once, so that no step waits for what that prepares. wait: returns when the passes that were called
    have been computed: a device works on them while the host goes on.
    """

    name: str
    asynchronous: bool
    compile: Compile
    check: Callable[[CacheShape], None]
    free_memory: Callable[[], int | None]
    packed_bytes: Callable[[Matrix], int]
    allocate: Allocate
    block_bytes: BlockBytes
    constant: MakeConstant
    pack: Pack
    pack_table: PackTable
    tied_head: TiedHead
    embed: Embed
    feed: Feed
    select: Select
    linear: Linear
    rope_store: RopeStore
    prepare: Prepare
    tree_attention: TreeAttention
    move_kv: MoveKV
    sample: Sample
    rank: Rank
    settle: Settle
    guessing: Guessing | None
    host: Host
    sizes: tuple[int, ...]
    wait: Callable[[], None]
    finish: Callable[[], None]  # all weights are packed


def _reference(options: Options) -> Ops:
    from .reference import build  # torch, which nothing else here needs, takes 1.6 s to import

    return build(options)


def _native(options: Options) -> Ops:
    from .native.ops import build

    return build(options)


def _triton(options: Options) -> Ops:
    from .gpu.device import check_machine

    device = check_machine(options.device)  # first: what comes next cannot be imported without triton
    from .gpu.ops import build

    return build(options, device)


def check_formats(options: Options) -> None:
    """Raises BackendError for a format that there is not."""
    for what, value, choices in (
        ("weight", options.weights, WEIGHTS),
        ("activation", options.activations, ACTIVATIONS),
        ("cache", options.kv, KV_FORMATS),
    ):
        if value not in choices:
            raise BackendError(f"There is no {what} format {value!r}; choose one of {', '.join(choices)}.")


def load(name: str = "reference", options: Options | None = None) -> Ops:
    """Raises BackendError for a name that is not known; asked for and missing never falls back silently."""
    backends = {"reference": _reference, "native": _native, "triton": _triton}
    if name not in backends:
        raise BackendError(f"There is no kernel backend {name!r}; choose one of {', '.join(backends)}.")
    return backends[name](options or Options())
