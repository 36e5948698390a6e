"""What is its own: hidden states that arrive with verdicts, and of too many only the last."""

from __future__ import annotations

import numpy as np
from line_model import LineModel

from paceline.kernels.backend import load
from paceline.spec.eagle_drafter import EagleDrafter
from paceline.spec.proposer import Ask, Verdict


def verdict(start: int, count: int) -> Verdict:
    """Its drafter's features are the second ones."""
    features = np.arange(start, start + count, dtype=np.float32)[:, None]
    return Verdict("s", tuple(range(count)), start=start, features=(features[:0], features))


def drafter_of(model: LineModel) -> EagleDrafter:
    drafter = EagleDrafter(model, None, load(), index=1, token_ms=lambda: 1e9)  # type: ignore[arg-type]
    drafter.deepest = 1
    return drafter


def ask(length: int) -> Ask:
    return Ask("s", [i % 50 for i in range(length)], 1, 8, list(range(100)))


def test_of_a_long_prompt_only_the_window_is_entered() -> None:
    model = LineModel(1)
    drafter = drafter_of(model)
    for start in range(0, 1000, 250):
        drafter.observe([verdict(start, 250)])
    drafter.propose([ask(1001)])
    assert len(drafter.propose([ask(1001)])[0].tokens) == 4
    assert model.rows == 120, "whole blocks of the last 128"
    drafter.observe([verdict(1000, 3)])
    assert len(drafter.propose([ask(1004)])[0].tokens) == 4
    assert model.rows == 123


def test_nothing_is_guessed_while_states_are_missing_or_old() -> None:
    drafter = drafter_of(LineModel(1))
    drafter.observe([verdict(0, 20)])
    assert drafter.propose([ask(31)])[0].tokens == (), "the prompt goes on"
    drafter.observe([verdict(20, 10)])
    assert drafter.propose([ask(31)])[0].tokens != ()
    assert drafter.propose([ask(31)])[0].tokens == (), "nothing has come since"
    drafter.observe([verdict(16, 15)])  # preempted, with a prefix hit
    assert drafter.propose([ask(32)])[0].tokens != ()
