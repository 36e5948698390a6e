"""`tree_attention`: attention of new rows over a paged cache, where a row sees its ancestors and nothing beside them.

A sequence with c committed slots computes n new nodes. Node i stands in slot c + i of the sequence, whatever its depth:

    [0 ............ c)  [c  c+1 … c+n)
     committed           nodes of this step: a chain (prefill) or a tree (verification)

Every node sees all committed slots. Of the new ones a chain node sees itself and those before it; a tree node sees
itself and its ancestors, given as one 64-bit word (bit i set: node i is an ancestor or the node itself).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..kv_cache import Cache
from ..linear import Activation


class Layout(NamedTuple):
    """Where the rows of one step belong. S sequences, R rows in all, sequences' rows contiguous and in order.

    Host arrays: a step's layout is made on the host and moved by the backend's `Prepare` if it needs it elsewhere.
    """

    row_starts: NDArray[np.int32]  # [S + 1], rows of sequence s are row_starts[s] … row_starts[s + 1]
    context_lens: NDArray[np.int32]  # [S], committed slots c
    block_tables: NDArray[np.int32]  # [S, B], padded with 0
    causal: NDArray[np.bool_]  # [S], True: a chain
    ancestors: NDArray[np.int64]  # [R], read as 64 bits, ignored where causal

    @classmethod
    def chain(cls, rows: int, table: NDArray[np.int32], context: int = 0) -> Layout:
        """One sequence of `rows` new rows after `context` committed slots; table: [B]."""
        return cls(
            row_starts=np.array([0, rows], np.int32),
            context_lens=np.array([context], np.int32),
            block_tables=table[None],
            causal=np.ones(1, np.bool_),
            ancestors=np.zeros(rows, np.int64),
        )


class Prepare(Protocol):
    def __call__(self, layout: Layout) -> Any:
        """Derive, once per step, what every layer's attention needs; the result is the backend's own."""
        ...


class TreeAttention(Protocol):
    def __call__(self, q: Activation, cache: Cache, layer: int, prepared: Any) -> Activation:
        """q, as `rope_store` returned it for this layer, [R, Hq, D] -> [R, Hq * D]; scores are scaled by D^-0.5.

        Grouped heads: query head h reads key head h // (Hq / Hkv) (GQA, Ainslie et al., arXiv 2305.13245).
        """
        ...
