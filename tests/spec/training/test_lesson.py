from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from training import HIDDEN, examples_of, random_target

from paceline.spec.training import lesson
from paceline.spec.training.figures import MISSED
from paceline.spec.training.lesson import Lesson
from paceline.spec.training.student import Examples

TARGET = random_target()
VOCABULARY = np.arange(0, TARGET.vocab_size, 3)


class Known:
    """A student whose guesses are given: [depth, N, H]."""

    def __init__(self, guesses: Tensor) -> None:
        self.module = nn.Linear(1, 1)
        self._guesses = guesses

    def guesses(self, examples: Examples, depth: int) -> Iterator[Tensor]:
        return iter(self._guesses[:depth, None].expand(-1, len(examples.tokens), -1, -1))

    def finish(self, rows: Tensor) -> Tensor:
        return rows

    def config(self) -> dict[str, object]:
        return {}

    def extras(self, vocabulary: object) -> dict[str, Tensor]:
        return {}


def test_loss_and_ranks_by_hand() -> None:
    random = np.random.default_rng(0)
    tokens = random.integers(0, TARGET.vocab_size, 9).tolist()
    tokens[4] = 1  # cannot be guessed
    tokens[5:7] = [3, 6]
    hidden = random.standard_normal((9, 2, HIDDEN)).astype(np.float32)
    answers = torch.zeros(1, 9, dtype=torch.bool)
    answers[0, 3:7] = True  # tokens 3 … 6 are the model's own
    examples = replace(examples_of(TARGET, [tokens], hidden[None]), answers=answers)
    guesses = random.standard_normal((3, 7, HIDDEN)).astype(np.float32)
    taught_by, student = Lesson(TARGET, VOCABULARY, torch.device("cpu")), Known(torch.from_numpy(guesses))
    head = TARGET.head[VOCABULARY].astype(np.float64)

    def shares(logits: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        exponents = np.exp(logits - logits.max())
        return exponents / exponents.sum()  # type: ignore[no-any-return]

    total, weights = 0.0, 0.0
    for k in range(3):
        losses = []
        for t in range(7):
            if 3 <= t + 2 + k <= 6:
                state = hidden[t + 1 + k, 1].astype(np.float64)  # the target's own guess at token t + 2 + k
                taught = shares(head @ (state / np.sqrt((state**2).mean() + TARGET.eps) * TARGET.norm))
                losses.append(-(taught * np.log(shares(head @ guesses[k, t]))).sum())
        total += 0.8**k * float(np.mean(losses))
        weights += 0.8**k
    assert float(taught_by.loss(student, examples, 3)) == pytest.approx(total / weights, rel=1e-4)

    found = taught_by.ranks(student, [examples], 3)
    assert found.shape == (2, 3)  # after tokens 2 and 3, three of the model's own follow those known
    for row, t in enumerate((1, 2)):
        for k in range(3):
            token, logits = tokens[t + 2 + k], head @ guesses[k, t]
            better = MISSED if token % 3 else int((logits > logits[token // 3]).sum())
            assert found[row, k] == better


def test_logits_made_in_pieces_teach_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    tokens = [random.integers(0, TARGET.vocab_size, 12).tolist() for _ in range(2)]
    examples = examples_of(TARGET, tokens, random.standard_normal((2, 12, 1, HIDDEN)).astype(np.float32))
    guesses = torch.from_numpy(random.standard_normal((2, 10, HIDDEN)).astype(np.float32)).requires_grad_()
    found = []
    for most in (2**25, 7 * len(VOCABULARY)):  # 20 rows at once, or 7
        monkeypatch.setattr(lesson, "_LOGITS", most)
        taught, student = lesson.Lesson(TARGET, VOCABULARY, torch.device("cpu")), Known(guesses)
        loss = taught.loss(student, examples, 2)
        (gradient,) = torch.autograd.grad(loss, guesses)
        found.append((loss.detach().numpy(), gradient.numpy(), taught.ranks(student, [examples], 2)))
    for whole, pieces in zip(*found, strict=True):
        np.testing.assert_allclose(pieces, whole, rtol=1e-4, atol=1e-6)


def test_a_text_without_answers_teaches_nothing() -> None:
    examples = examples_of(TARGET, [[1, 2, 3, 4]], np.ones((1, 4, 1, HIDDEN), np.float32))
    examples = replace(examples, answers=torch.zeros_like(examples.answers))
    nothing, student = Lesson(TARGET, VOCABULARY, torch.device("cpu")), Known(torch.zeros(2, 2, HIDDEN))
    assert float(nothing.loss(student, examples, 2)) == 0.0
    assert nothing.ranks(student, [examples], 2).shape == (0, 2)


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_guess_that_is_not_finite_is_missed(broken: float) -> None:
    examples = examples_of(TARGET, [[0, 3, 6, 9, 12]], np.ones((1, 5, 1, HIDDEN), np.float32))
    guesses = torch.zeros(1, 3, HIDDEN)
    guesses[0, 1] = broken
    ranks = Lesson(TARGET, VOCABULARY, torch.device("cpu")).ranks(Known(guesses), [examples], 1)
    assert (ranks == MISSED).tolist() == [[False], [True], [False]]
