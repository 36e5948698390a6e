"""The model that is trained and the model that is served are the same computation, for every family of targets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import make_folder
from training import examples_of, random_target

from paceline.engine.config import EngineConfig
from paceline.engine.draft_checkpoint import open_draft
from paceline.engine.model.checkpoint import open_checkpoint
from paceline.engine.teacher import DecoderTeacher, target_of
from paceline.server.train_text import text_files
from paceline.spec.training.draft_student import DraftStudent
from paceline.spec.training.export import save_drafter
from paceline.spec.training.target import Floats, Target

DEPTH = 3


def guessed(student: DraftStudent, target: Target, tokens: list[int]) -> list[Floats]:
    """Logits [N, V] of each guess in a row."""
    hidden = np.zeros((1, len(tokens), 1, target.hidden_size), np.float32)
    with torch.no_grad():
        guesses = student.guesses(examples_of(target, [tokens], hidden), DEPTH)
        return [(student.finish(guess[0]) @ torch.from_numpy(target.head).T).numpy() for guess in guesses]


@pytest.mark.parametrize("family", ["llama2", "smollm2", "mistral", "qwen2", "qwen3"])
def test_what_is_served_is_what_was_trained(tmp_path: Path, family: str) -> None:
    checkpoint = open_checkpoint(make_folder(tmp_path / "model", family, num_hidden_layers=3), tmp_path)
    target = target_of(checkpoint)
    student = DraftStudent(target, 2)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in student.module.parameters():  # one that is left out or swapped shows
            parameter += 0.1 * parameter.std() * torch.randn(parameter.shape, generator=generator)
    out = tmp_path / "draft"
    out.mkdir()
    save_drafter(out, student, target, np.arange(target.vocab_size), text_files(checkpoint.text))

    draft = open_draft(out, checkpoint.text, tmp_path)
    assert draft.config.num_layers == 2
    assert draft.text.eos_ids == checkpoint.text.eos_ids
    own = target_of(draft)
    assert (own.head is own.embed) == (target.head is target.embed)
    tokens = np.random.default_rng(0).integers(0, target.vocab_size, 40).tolist()
    states = DecoderTeacher(draft, EngineConfig(device="cpu", backend="reference"), (2,), 48).hidden(tokens)[:, 0]
    normal = states / np.sqrt((states**2).mean(-1, keepdims=True) + own.eps) * own.norm
    served = normal @ own.head.T
    read = guessed(DraftStudent(own, 2), own, tokens)
    trained = guessed(student, target, tokens)
    for k in range(DEPTH):
        count = len(tokens) - 2 - k  # those after it have fewer tokens ahead than a guess so deep needs
        np.testing.assert_allclose(read[k][:count], served[1 + k : 1 + k + count], atol=1e-3, rtol=1e-3)
        np.testing.assert_allclose(trained[k][:count], read[k][:count], atol=0.15)  # bfloat16 in the file


def test_layers_are_taken_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    target = random_target()
    for count, layers, expected in ((12, 4, [0, 4, 7, 11]), (12, 1, [11]), (5, 5, [0, 1, 2, 3, 4]), (7, 2, [0, 6])):
        taken: list[int] = []

        def layer(index: int, taken: list[int] = taken) -> object:
            taken.append(index)
            return target.layer(0)

        DraftStudent(replace(target, layers=count, layer=layer), layers)  # type: ignore[arg-type]
        assert taken == expected


def test_a_guess_sees_nothing_of_what_comes_later() -> None:
    target = random_target()
    student = DraftStudent(target, 2)
    tokens = np.random.default_rng(4).integers(0, target.vocab_size, 20).tolist()
    other = [(token + 1) % target.vocab_size for token in tokens]
    before, at = guessed(student, target, tokens), 7
    for k in range(DEPTH):
        after = guessed(student, target, [*tokens[: at + 2 + k], *other[at + 2 + k :]])
        np.testing.assert_allclose(before[k][at], after[k][at], atol=1e-5)
        assert not np.allclose(before[k][at + 1], after[k][at + 1], atol=1e-2)
