from __future__ import annotations

import numpy as np
import pytest
import torch
from training import HIDDEN, examples_of, random_target

from paceline.spec.training.heads import HeadsStudent

TARGET = random_target()


@pytest.mark.parametrize("sequential", [False, True])
def test_heads_by_hand(sequential: bool) -> None:
    """x + silu(W x + b) over the normed state; Hydra's first block also reads the tokens since the pending one."""
    student = HeadsStudent(TARGET, 3, sequential=sequential)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in student.module.parameters():
            parameter.normal_(0, 0.1)
    weights = {name: tensor.numpy().astype(np.float64) for name, tensor in student.module.state_dict().items()}
    random = np.random.default_rng(0)
    tokens = random.integers(0, TARGET.vocab_size, 12).tolist()
    hidden = random.standard_normal((12, 1, HIDDEN)).astype(np.float32)
    with torch.no_grad():
        guesses = [guess[0].numpy() for guess in student.guesses(examples_of(TARGET, [tokens], hidden[None]), 3)]
    for k in range(3):
        for t in range(12 - 2 - k):
            state = hidden[t, 0].astype(np.float64)
            x = state / np.sqrt((state**2).mean() + TARGET.eps) * TARGET.norm
            for block in range(2 if sequential else 1):
                read = x
                if sequential and block == 0:
                    read = np.concatenate([x, *(TARGET.embed[tokens[t + 1 + i]] for i in range(k + 1))])
                y = weights[f"{k}.{block}.linear.weight"] @ read + weights[f"{k}.{block}.linear.bias"]
                x = x + y / (1 + np.exp(-y))
            np.testing.assert_allclose(guesses[k][t], x, atol=1e-4, rtol=1e-4)


def test_they_start_as_the_state_itself() -> None:
    hidden = np.ones((1, 5, 1, HIDDEN), np.float32)
    for sequential in (False, True):
        student = HeadsStudent(TARGET, 2, sequential=sequential)
        first, second = student.guesses(examples_of(TARGET, [[1, 2, 3, 4, 5]], hidden), 2)
        assert torch.equal(first, second)
