"""The token tree: what one sequence computes in one step, be it a prefill chunk, a plain step or a tree of guesses."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

MAX_NODES = 64  # of a branching tree: ancestors are 64-bit words


@dataclass(frozen=True)
class TokenTree:
    """Nodes in an order where parents come before children; node 0 is a known token, never a guess.

    tokens, parents: [n], parents[0] == -1 and 0 <= parents[i] < i. Raises ValueError otherwise.
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    is_chain: bool = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not self.tokens or len(self.tokens) != len(self.parents) or self.parents[0] != -1:
            raise ValueError("a tree has a root whose parent is -1, and one parent per token")
        is_chain = True
        for node, parent in enumerate(self.parents):
            if parent != node - 1:
                is_chain = False
                if not 0 <= parent < node:
                    raise ValueError(f"parents must come before their children: {self.parents}")
        object.__setattr__(self, "is_chain", is_chain)
        if len(self.tokens) > MAX_NODES and not is_chain:
            raise ValueError(f"a branching tree has at most {MAX_NODES} nodes, got {len(self.tokens)}")

    @classmethod
    def chain(cls, tokens: tuple[int, ...]) -> TokenTree:
        return cls(tokens, tuple(range(-1, len(tokens) - 1)))

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """[n] edges from the root: node i stands at position c + depths[i]."""
        depths = [0]
        for parent in self.parents[1:]:
            depths.append(depths[parent] + 1)
        return tuple(depths)

    @cached_property
    def ancestors(self) -> tuple[int, ...]:
        """[n] 64-bit words, bit j of word i set when j is i or an ancestor of i. Raises ValueError for n > 64."""
        if len(self) > MAX_NODES:
            raise ValueError(f"ancestor words hold {MAX_NODES} nodes, the chain has {len(self)}")
        words = [1]
        for node, parent in enumerate(self.parents[1:], start=1):
            words.append(words[parent] | 1 << node)
        return tuple(words)

    @cached_property
    def children(self) -> tuple[dict[int, int], ...]:
        """[n] token -> child node; of two children with the same token the first counts."""
        children: list[dict[int, int]] = [{} for _ in self.tokens]
        for node, (token, parent) in enumerate(zip(self.tokens, self.parents, strict=True)):
            if node:
                children[parent].setdefault(token, node)
        return tuple(children)
