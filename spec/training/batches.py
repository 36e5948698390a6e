"""Texts and hidden states as examples: texts of like length together, a batch at a time."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from .dialogues import Dialogue
from .student import Examples

_MIXED = 40  # tokens of noise on a length: the same texts do not always meet
SHORTEST = 3  # tokens; a shorter text has nothing to guess


class Batches:
    """texts, and states [rows of all texts, T, H] in the same order. embed: [V, H] on the device of the training."""

    def __init__(self, texts: Sequence[Dialogue], states: NDArray[np.float16], embed: torch.Tensor) -> None:
        self._texts = texts
        self._states = states
        self._embed = embed
        self._starts = np.concatenate([[0], np.cumsum([len(text.tokens) for text in texts])])

    def grouped(self, chosen: Sequence[int], size: int, seed: str) -> list[list[int]]:
        """The chosen texts in batches of at most `size` padded tokens, in an order that depends on the seed alone."""
        rng = random.Random(seed)
        usable = [index for index in chosen if len(self._texts[index].tokens) >= SHORTEST]
        key = {index: len(self._texts[index].tokens) + rng.random() * _MIXED for index in usable}
        groups: list[list[int]] = [[]]
        longest = 0
        for index in sorted(usable, key=lambda index: key[index]):
            longest = max(longest, len(self._texts[index].tokens))
            if groups[-1] and (len(groups[-1]) + 1) * longest > size:
                groups.append([])
                longest = len(self._texts[index].tokens)
            groups[-1].append(index)
        rng.shuffle(groups)
        return [group for group in groups if group]

    def load(self, group: Sequence[int]) -> Examples:
        length = max(len(self._texts[index].tokens) for index in group)
        tokens = np.zeros((len(group), length), np.int64)
        hidden = np.zeros((len(group), length, *self._states.shape[1:]), np.float32)
        answers = np.zeros((len(group), length), np.bool_)
        for row, index in enumerate(group):
            text, start = self._texts[index], self._starts[index]
            count = len(text.tokens)
            tokens[row, :count] = text.tokens
            hidden[row, :count] = self._states[start : start + count]
            for first, end in text.answers:
                answers[row, first:end] = True
        device = self._embed.device
        ids = torch.from_numpy(tokens).to(device)
        return Examples(
            ids, self._embed[ids], torch.from_numpy(hidden).to(device), torch.from_numpy(answers).to(device)
        )
