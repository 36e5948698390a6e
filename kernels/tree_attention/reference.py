"""Plain torch implementation of `tree_attention`: gather a sequence's keys, mask, softmax."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

from ..kv_cache.reference import TensorCache
from ..paging import BLOCK_SIZE
from . import Layout


@dataclass(frozen=True, slots=True)
class _Span:
    """One sequence of the step: its rows, the slots its keys lie in, and which of them each row sees."""

    start: int
    stop: int
    slots: torch.Tensor  # [c + n] int64
    mask: torch.Tensor | None  # [n, c + n] bool, None: everything is seen


def _visible(layout: Layout, s: int, start: int, stop: int, context: int) -> torch.Tensor:
    rows = stop - start
    mask = torch.ones(rows, context + rows, dtype=torch.bool)
    if layout.causal[s]:
        mask[:, context:] = torch.ones(rows, rows, dtype=torch.bool).tril_()
    else:
        bits = torch.arange(rows)
        mask[:, context:] = (torch.from_numpy(layout.ancestors[start:stop, None]) >> bits) & 1 == 1
    return mask


def prepare(layout: Layout, device: torch.device) -> list[_Span]:
    starts, contexts = layout.row_starts.tolist(), layout.context_lens.tolist()
    offsets = torch.arange(BLOCK_SIZE)
    spans = []
    for s, context in enumerate(contexts):
        start, stop = starts[s], starts[s + 1]
        length = context + stop - start
        blocks = torch.from_numpy(layout.block_tables[s, : -(-length // BLOCK_SIZE)]).long()
        slots = (blocks[:, None] * BLOCK_SIZE + offsets).view(-1)[:length]
        mask = None if stop - start == 1 else _visible(layout, s, start, stop, context).to(device)
        spans.append(_Span(start, stop, slots.to(device), mask))
    return spans


def tree_attention(q: torch.Tensor, cache: TensorCache, layer: int, prepared: list[_Span]) -> torch.Tensor:
    k, v = cache.k[layer], cache.v[layer]
    rows, heads, head_dim = q.shape
    kv_heads = k.shape[1]
    out = torch.empty_like(q)
    for span in prepared:
        n = span.stop - span.start
        # Heads that share a key head become rows beside each other: [Hkv, n * group, D]
        queries = q[span.start : span.stop].view(n, kv_heads, -1, head_dim).transpose(0, 1)
        group = queries.shape[2]
        keys = k.index_select(0, span.slots).transpose(0, 1)
        values = v.index_select(0, span.slots).transpose(0, 1)
        mask = None if span.mask is None else span.mask.repeat_interleave(group, 0)
        seen = functional.scaled_dot_product_attention(
            queries.reshape(1, kv_heads, n * group, head_dim),
            keys.to(q.dtype).unsqueeze(0),
            values.to(q.dtype).unsqueeze(0),
            attn_mask=mask,
        )
        out[span.start : span.stop] = (
            seen.view(kv_heads, n, group, head_dim).transpose(0, 1).reshape(n, heads, head_dim)
        )
    return out.view(rows, heads * head_dim)
