"""The rows of one pass, as the host has them: a backend moves them to where it computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .sample import Draw
from .tree_attention import Layout


class Batch(NamedTuple):
    """R rows of S sequences."""

    ids: NDArray[np.int64]  # [R]
    positions: NDArray[np.int64]  # [R]
    slots: NDArray[np.int64]  # [R]
    sampled: NDArray[np.int64]  # [M], rows whose next token is wanted
    layout: Layout
    features: NDArray[np.float32] | None = None  # [R, W], for a pass that calls `feed`
    draws: Sequence[Draw] | None = None  # [M], of the tokens after the sampled rows, for a pass that ranks its guesses
    sources: NDArray[np.int64] | None = None  # [R], for a pass that calls `fill`

    @classmethod
    def of(
        cls,
        *,
        ids: list[int],
        positions: list[int],
        slots: list[int],
        sampled: list[int],
        starts: list[int],
        contexts: list[int],
        tables: Sequence[list[int]],
        causal: list[bool],
        ancestors: list[int],
        features: NDArray[np.float32] | None = None,
    ) -> Batch:
        """From lists, as `Layout` describes them. Block tables are padded to the longest, ancestors are unsigned words.

        One array for all of a type: with a few rows, what takes time is calling numpy, and calling it after a pass over
        the weights, which leaves nothing of it in the caches.
        """
        rows, sequences, last = len(ids), len(causal), len(ids) * 4
        if rows >= 64:  # the highest bit may be set
            ancestors = [word - (word >> 63 << 64) for word in ancestors]
        wide = np.array(ids + positions + slots + ancestors + sampled, np.int64)
        narrow = starts + contexts
        if sequences == 1:
            narrow += tables[0]
        else:
            widest = max(map(len, tables))
            for table in tables:
                narrow += table
                narrow += [0] * (widest - len(table))
        short = np.array(narrow, np.int32)
        layout = Layout(
            short[: sequences + 1],
            short[sequences + 1 : 2 * sequences + 1],
            short[2 * sequences + 1 :].reshape(sequences, -1),
            np.array(causal, np.bool_),
            wide[3 * rows : last],
        )
        return cls(wide[:rows], wide[rows : 2 * rows], wide[2 * rows : 3 * rows], wide[last:], layout, features)
