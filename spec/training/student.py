"""What every kind of drafter has in common while it learns: examples in, guesses of several depths out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Examples:
    """B texts of L tokens, short ones padded at the end. T hidden states per token are read, H their size.

    tokens: [B, L] int64. embedded: [B, L, H], the target's embeddings of them. hidden: [B, L, T, H], what the target
    made of each token; the last is its state after the last layer, before the final norm. answers: [B, L] bool, tokens
    that the model itself chose: only these are learned.
    """

    tokens: Tensor
    embedded: Tensor
    hidden: Tensor
    answers: Tensor

    @property
    def places(self) -> int:
        """N = L - 2: at index t < N token t + 1 is known and token t + 2 is the first to guess."""
        return self.tokens.shape[1] - 2

    def ahead(self, values: Tensor, by: int) -> Tensor:
        """values [B, L, …] of the tokens `by` after each index, [B, N, …], zeros past the end."""
        found = values[:, by : by + self.places]
        if found.shape[1] == self.places:
            return found
        pad = torch.zeros(values.shape[0], self.places - found.shape[1], *values.shape[2:])
        return torch.cat([found, pad.to(found)], dim=1)


class Student(Protocol):
    """A drafter that learns. Its guess k at index t of a text is of token t + 2 + k."""

    @property
    def module(self) -> nn.Module:
        """What is trained; its parameters have the names of the file."""
        ...

    def guesses(self, examples: Examples, depth: int) -> Iterator[Tensor]:
        """[B, N, H] for k = 0 … depth - 1, each made with the tokens up to t + 1 + k, of which those after t + 1 stand
        for guesses that were right. Places whose guesses are of no answer may hold anything.
        """
        ...

    def finish(self, rows: Tensor) -> Tensor:
        """Some rows [M, H] of a guess as the head's rows are multiplied with."""
        ...

    def config(self) -> Mapping[str, object]:
        """What its file says about it."""
        ...

    def extras(self, vocabulary: NDArray[np.int64]) -> Mapping[str, Tensor]:
        """What its file holds besides its parameters. vocabulary: [N] ids that it guesses."""
        ...
