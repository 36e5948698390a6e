"""Kernel backends, where the machine has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from paceline.kernels.backend import BackendError, Guessing, Ops, Options, load
from paceline.kernels.fill.reference import fill
from paceline.kernels.join.reference import join
from paceline.kernels.rank.reference import rank_rows


def ops_or_skip(name: str) -> Ops:
    """The ops of a backend on one thread; skips the test, with the backend's own reason, where it cannot run."""
    try:
        return load(name, Options(threads=1))
    except BackendError as error:
        pytest.skip(str(error))


def guessing_reference() -> Ops:
    """The reference, with passes that go on from their own guesses."""

    def rank(logits: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
        tokens, probabilities = rank_rows(logits.float().numpy(), *rest)
        return torch.from_numpy(tokens), torch.from_numpy(probabilities)

    return replace(ops_or_skip("reference"), guessing=Guessing(rank, join, fill))
