"""What a student is taught, and how it is examined: the target's own distribution, the tokens that came."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from .figures import MISSED
from .student import Examples, Student
from .target import Target

_LOGITS = 2**25  # most at once, 128 MiB: a model with a large vocabulary and a long batch has gigabytes of them
_DECAY = 0.8  # weight of a guess over that of the one before it: later ones matter only when those before were right


class Lesson:
    """vocabulary: [N] ids that can be guessed, ascending. embed: [V, H] on the device."""

    def __init__(self, target: Target, vocabulary: NDArray[np.int64], device: torch.device) -> None:
        self.embed = torch.from_numpy(target.embed).to(device)
        self._head = torch.from_numpy(target.head[vocabulary]).to(device)
        self._norm = torch.from_numpy(target.norm).to(device)
        self._eps = target.eps
        self._rows = max(1, _LOGITS // len(vocabulary))  # whose logits are there at once
        number = np.full(target.vocab_size, -1, np.int64)
        number[vocabulary] = np.arange(len(vocabulary))
        self._number = torch.from_numpy(number).to(device)  # [V], a token's place among the guessable ones

    def loss(self, student: Student, examples: Examples, depth: int) -> Tensor:
        """Cross entropy with the target's distribution over what can be guessed, where it answers; a weighted mean
        over the guesses in a row.
        """
        total = torch.zeros((), device=examples.hidden.device)
        weights = 0.0
        for k, guess in enumerate(student.guesses(examples, depth)):
            used = examples.ahead(examples.answers, 2 + k)
            if not used.any():
                continue
            pieces = self._pieces(used)
            rows = guess[used].chunk(pieces)
            states = examples.ahead(examples.hidden[:, :, -1], 1 + k)[used].chunk(pieces)
            loss = torch.zeros_like(total)
            for piece in zip(rows, states, strict=True):
                if len(rows) == 1:
                    loss = self._cross_entropy(student, *piece)
                else:  # the gradient makes the logits again
                    loss = loss + checkpoint(self._cross_entropy, student, *piece, use_reentrant=False)
            weight = _DECAY**k
            total = total + weight * loss / used.sum()
            weights += weight
        return total / max(weights, 1e-9)

    def _pieces(self, used: Tensor) -> int:
        """In how many parts logits are made for so many places that are used."""
        return -(-int(used.sum()) // self._rows)

    def _cross_entropy(self, student: Student, rows: Tensor, states: Tensor) -> Tensor:
        """rows, states: [M, H] of guesses, and of what the target made of the tokens before what is guessed. A sum."""
        logits = student.finish(rows) @ self._head.T
        with torch.no_grad():
            taught = (F.rms_norm(states, states.shape[-1:], self._norm, self._eps) @ self._head.T).softmax(-1)
        return -(taught * logits.log_softmax(-1)).sum()

    def ranks(self, student: Student, batches: Iterable[Examples], depth: int) -> NDArray[np.int64]:
        """[places, depth]: the rank of each token that came, at places followed by `depth` answered tokens."""
        found = [np.zeros((0, depth), np.int64)]
        with torch.no_grad():
            for examples in batches:
                every = torch.stack([examples.ahead(examples.answers, 2 + k) for k in range(depth)]).all(0)
                if not every.any():
                    continue
                columns = []
                for k, guess in enumerate(student.guesses(examples, depth)):
                    number = self._number[examples.ahead(examples.tokens, 2 + k)[every]]
                    pieces = zip(*(values.chunk(self._pieces(every)) for values in (guess[every], number)), strict=True)
                    columns.append(torch.cat([self._rank(student, *piece) for piece in pieces]))
                found.append(torch.stack(columns, -1).cpu().numpy())
        return np.concatenate(found)

    def _rank(self, student: Student, rows: Tensor, number: Tensor) -> Tensor:
        """rows: [M, H]; number: [M], of the token that came, -1 for one that cannot be guessed. [M].

        Logits that are not finite are no guess: nothing is above a NaN, which would make it the best.
        """
        logits = student.finish(rows) @ self._head.T
        value = logits.gather(1, number.clamp(min=0)[:, None])
        missed = (number < 0) | ~logits.isfinite().all(1)
        return (logits > value).sum(1).masked_fill(missed, MISSED)
