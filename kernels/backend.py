"""Choose the ops once per process: one frozen table, asked for by name or picked for the machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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


class BackendError(Exception):
    """A backend that was asked for by name and cannot run here."""


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


def _reference() -> Ops:
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
    )


def load(name: str = "reference") -> Ops:
    """Raises BackendError for a name that is not known; asked for and missing never falls back silently."""
    backends = {"reference": _reference}
    if name not in backends:
        raise BackendError(f"There is no kernel backend {name!r}; choose one of {', '.join(backends)}.")
    return backends[name]()
