"""Choose the ops once per process: one frozen table, asked for by name or picked for the device."""

from __future__ import annotations

from dataclasses import dataclass

from .embed import Embed
from .linear import Linear, Pack
from .move_kv import MoveKV
from .rope_store import RopeStore
from .sample import Sample
from .tree_attention import Prepare, TreeAttention


class BackendError(Exception):
    """A backend that was asked for by name and cannot run here."""


@dataclass(frozen=True, slots=True)
class Ops:
    """Every op of a step, all from one backend: results of different backends are never mixed."""

    name: str
    pack: Pack
    embed: Embed
    linear: Linear
    rope_store: RopeStore
    prepare: Prepare
    tree_attention: TreeAttention
    move_kv: MoveKV
    sample: Sample


def _reference() -> Ops:
    from .embed.reference import embed
    from .linear.reference import linear, pack
    from .move_kv.reference import move_kv
    from .rope_store.reference import rope_store
    from .sample.reference import sample
    from .tree_attention.reference import prepare, tree_attention

    return Ops("reference", pack, embed, linear, rope_store, prepare, tree_attention, move_kv, sample)


def load(name: str = "reference") -> Ops:
    """Raises BackendError for a name that is not known; asked for and missing never falls back silently."""
    backends = {"reference": _reference}
    if name not in backends:
        raise BackendError(f"There is no kernel backend {name!r}; choose one of {', '.join(backends)}.")
    return backends[name]()
