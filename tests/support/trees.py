"""Random token trees."""

from __future__ import annotations

from hypothesis import strategies as st

from paceline.spec.tree import TokenTree


@st.composite
def trees(draw: st.DrawFn, vocab: int, most: int) -> TokenTree:
    """Trees of 1 … `most` nodes with tokens below `vocab`: bushy ones, deep ones and chains."""
    nodes = draw(st.integers(1, most))
    reach = draw(st.sampled_from([1, 2, most]))  # how far back a parent may stand; 1 gives a chain
    parents = [-1, *(draw(st.integers(max(0, node - reach), node - 1)) for node in range(1, nodes))]
    tokens = draw(st.lists(st.integers(0, vocab - 1), min_size=nodes, max_size=nodes))
    return TokenTree(tuple(tokens), tuple(parents))
