"""Choose the ops once per process: one frozen table, asked for by name or picked for the machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .batch import Batch
from .embed import Embed, PackTable, TiedHead
from .kv_cache import Allocate, BlockBytes, Cache
from .linear import Linear, Pack
from .move_kv import MoveKV
from .rope_store import RopeStore
from .sample import Sample
from .select import Select
from .tree_attention import Prepare, TreeAttention

Pass = Callable[[Batch, Cache], tuple[torch.Tensor, torch.Tensor]]  # (logits [M, V], hidden [M, H])
Compile = Callable[[Callable[[Batch, Cache], Any]], Pass]


WEIGHTS = ("stored", "q4", "q4_128", "q8", "q8_128", "bf16", "f16", "f32")
KV_FORMATS = ("f16", "int8")


class BackendError(Exception):
    """A backend that was asked for by name and cannot run here; the text is one sentence for a person."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a backend may be told. Only the native one has choices; the reference keeps the model's own dtype.

    weights: one of WEIGHTS; "stored" keeps every value a checkpoint holds. kv: one of KV_FORMATS. store: a file that
    keeps packed weights for the next start, valid for one `fingerprint` of the model.
    """

    threads: int | None = None
    weights: str = "stored"
    kv: str = "f16"
    store: Path | None = None
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Ops:
    """Every op of a step, all from one backend: results of different backends are never mixed.

    compile: makes a pass of a function that calls ops on a batch and a cache. A backend may run the function each
    time, or once, to record what it calls.
    """

    name: str
    compile: Compile
    allocate: Allocate
    block_bytes: BlockBytes
    pack: Pack
    pack_table: PackTable
    tied_head: TiedHead
    embed: Embed
    select: Select
    linear: Linear
    rope_store: RopeStore
    prepare: Prepare
    tree_attention: TreeAttention
    move_kv: MoveKV
    sample: Sample
    finish: Callable[[], None]  # all weights are packed


def _reference(options: Options) -> Ops:
    from .embed.reference import embed, pack_table, tied_head
    from .kv_cache import allocate, block_bytes
    from .linear.reference import linear, pack
    from .move_kv.reference import move_kv
    from .rope_store.reference import rope_store
    from .sample.reference import sample
    from .select.reference import select
    from .tree_attention.reference import prepare, tree_attention

    return Ops(
        name="reference",
        compile=torch.inference_mode(),
        allocate=allocate,
        block_bytes=block_bytes,
        pack=pack,
        pack_table=pack_table,
        tied_head=tied_head,
        embed=embed,
        select=select,
        linear=linear,
        rope_store=rope_store,
        prepare=prepare,
        tree_attention=tree_attention,
        move_kv=move_kv,
        sample=sample,
        finish=lambda: None,
    )


def _native(options: Options) -> Ops:
    from .native.ops import build

    return build(options)


def load(name: str = "reference", options: Options | None = None) -> Ops:
    """Raises BackendError for a name that is not known; asked for and missing never falls back silently."""
    backends = {"reference": _reference, "native": _native}
    if name not in backends:
        raise BackendError(f"There is no kernel backend {name!r}; choose one of {', '.join(backends)}.")
    return backends[name](options or Options())
