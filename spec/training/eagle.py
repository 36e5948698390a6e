"""The feature-conditioned drafter while it learns: one decoder layer over the target's hidden states (EAGLE-3).

At index t it reads the target's hidden states of token t and the embedding of token t + 1, and guesses token t + 2; its
own output then stands in for the hidden states it does not have yet (Li et al., arXiv 2503.01840). Names of parameters
are those of published EAGLE-3 checkpoints.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .layers import MLP, LayerShape, Norm, Turn, rotate


class _Attention(nn.Module):
    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self._shape = shape
        width = shape.heads * shape.head_dim
        self.q_proj = nn.Linear(2 * shape.hidden, width, bias=False)
        self.k_proj = nn.Linear(2 * shape.hidden, shape.kv_heads * shape.head_dim, bias=False)
        self.v_proj = nn.Linear(2 * shape.hidden, shape.kv_heads * shape.head_dim, bias=False)
        self.o_proj = nn.Linear(width, shape.hidden, bias=False)

    def forward(self, x: Tensor, turn: Turn, past: list[tuple[Tensor, Tensor]], mask: Tensor) -> Tensor:
        """x: [B, L, 2H], of the len(past)-th guess in a row at each index; this pass's keys and values join `past`.

        The first pass's keys stand for what the target has computed, up to each index; those of later passes only for
        the same index's own earlier guesses.
        """
        s = self._shape
        batch, length, _ = x.shape
        group = s.heads // s.kv_heads
        q = rotate(self.q_proj(x).view(batch, length, s.heads, s.head_dim), turn)
        k = rotate(self.k_proj(x).view(batch, length, s.kv_heads, s.head_dim), turn)
        v = self.v_proj(x).view(batch, length, s.kv_heads, s.head_dim)
        past.append((k, v))
        q = q.view(batch, length, s.kv_heads, group, s.head_dim) * s.head_dim**-0.5
        scores = torch.einsum("blkgd,bmkd->bkglm", q, past[0][0]).masked_fill(mask, float("-inf"))
        own = [torch.einsum("blkgd,blkd->bkgl", q, key)[..., None] for key, _ in past[1:]]
        weights = torch.cat([scores, *own], dim=-1).softmax(dim=-1)
        out = torch.einsum("bkglm,bmkd->blkgd", weights[..., :length], past[0][1])
        for i, (_, value) in enumerate(past[1:]):
            out = out + weights[..., length + i].permute(0, 3, 1, 2)[..., None] * value[:, :, :, None]
        result: Tensor = self.o_proj(out.reshape(batch, length, -1))
        return result


class _Layer(nn.Module):
    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.input_layernorm = Norm(shape.hidden, shape.eps)
        self.hidden_norm = Norm(shape.hidden, shape.eps)
        self.self_attn = _Attention(shape)
        self.post_attention_layernorm = Norm(shape.hidden, shape.eps)
        self.mlp = MLP(shape)


class EagleLayer(nn.Module):
    """fc over `taps` hidden states per token, one layer, a norm; the head's rows are given with each call."""

    def __init__(self, shape: LayerShape, taps: int) -> None:
        super().__init__()
        self.shape = shape
        self.fc = nn.Linear(taps * shape.hidden, shape.hidden, bias=False)
        self.midlayer = _Layer(shape)
        self.norm = Norm(shape.hidden, shape.eps)

    def features(self, taps: Tensor) -> Tensor:
        """taps: [B, L, T, H] -> [B, L, H]."""
        out: Tensor = self.fc(taps.flatten(-2))
        return out

    def guess(
        self,
        hidden: Tensor,
        embedded: Tensor,
        turn: Turn,
        past: list[tuple[Tensor, Tensor]],
        mask: Tensor,
    ) -> Tensor:
        """hidden: [B, L, H], features or the guess before; embedded: [B, L, H] of the next tokens -> [B, L, H]."""
        layer = self.midlayer
        both = torch.cat([layer.input_layernorm(embedded), layer.hidden_norm(hidden)], dim=-1)
        x = hidden + layer.self_attn(both, turn, past, mask)
        out: Tensor = x + layer.mlp(layer.post_attention_layernorm(x))
        return out
