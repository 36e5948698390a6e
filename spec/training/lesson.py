"""What a student is taught, and how it is examined: the target's own distribution, the tokens that came."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from .figures import MISSED
from .student import Examples, Student
from .target import Target

_DECAY = 0.8  # weight of a guess over that of the one before it: later ones matter only when those before were right


class Lesson:
    """vocabulary: [N] ids that can be guessed, ascending. embed: [V, H] on the device."""

    def __init__(self, target: Target, vocabulary: NDArray[np.int64], device: torch.device) -> None:
        self.embed = torch.from_numpy(target.embed).to(device)
        self._head = torch.from_numpy(target.head[vocabulary]).to(device)
        self._norm = torch.from_numpy(target.norm).to(device)
        self._eps = target.eps
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
            logits = student.finish(guess[used]) @ self._head.T
            with torch.no_grad():
                states = examples.ahead(examples.hidden[:, :, -1], 1 + k)[used]
                taught = (F.rms_norm(states, states.shape[-1:], self._norm, self._eps) @ self._head.T).softmax(-1)
            weight = _DECAY**k
            total = total - weight * (taught * logits.log_softmax(-1)).sum(-1).mean()
            weights += weight
        return total / max(weights, 1e-9)

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
                    logits = student.finish(guess[every]) @ self._head.T
                    number = self._number[examples.ahead(examples.tokens, 2 + k)[every]]
                    value = logits.gather(1, number.clamp(min=0)[:, None])
                    rank = (logits > value).sum(1)
                    columns.append(rank.masked_fill(number < 0, MISSED))
                found.append(torch.stack(columns, -1).cpu().numpy())
        return np.concatenate(found)
