from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from training import HIDDEN, INNER, draw_parameters, examples_of, random_target

from paceline.engine.drafter_file import DrafterFile
from paceline.spec.recurrent import ARCHITECTURE
from paceline.spec.training.export import load_weights, save_drafter
from paceline.spec.training.recurrent_student import RecurrentStudent
from paceline.spec.training.target import Floats

TARGET = random_target()
DEPTH = 3
SHAPES = {
    "embed_norm.weight": (HIDDEN,),
    "hidden_norm.weight": (HIDDEN,),
    "mix.weight": (HIDDEN, 2 * HIDDEN),
    "mlp_norm.weight": (HIDDEN,),
    "mlp.gate_proj.weight": (INNER, HIDDEN),
    "mlp.up_proj.weight": (INNER, HIDDEN),
    "mlp.down_proj.weight": (HIDDEN, INNER),
    "norm.weight": (HIDDEN,),
}


@pytest.fixture(scope="module")
def student() -> RecurrentStudent:
    """Every parameter random, so that one that is left out or swapped shows."""
    student = RecurrentStudent(TARGET)
    draw_parameters(student.module)
    return student


def text(seed: int, length: int = 14) -> tuple[list[int], Floats]:
    """Tokens and, of each, two hidden states [n, 2, H]."""
    random = np.random.default_rng(seed)
    tokens = random.integers(0, TARGET.vocab_size, length).tolist()
    return tokens, random.standard_normal((length, 2, HIDDEN)).astype(np.float32)


def guessed(student: RecurrentStudent, tokens: list[int], hidden: Floats) -> list[tuple[Floats, Floats]]:
    """Of each guess in a row its states, and what the head's rows are multiplied with: [N, H] both."""
    with torch.no_grad():
        guesses = student.guesses(examples_of(TARGET, [tokens], hidden[None]), DEPTH)
        return [(guess[0].numpy(), student.finish(guess[0]).numpy()) for guess in guesses]


def normed(x: Floats, weight: Floats) -> Floats:
    scaled: Floats = x / np.sqrt((x**2).mean() + TARGET.eps) * weight
    return scaled


def test_the_step_by_hand(student: RecurrentStudent) -> None:
    """From the target's last hidden state on, each guess from the state of the one before and the token that came."""
    weights = {name.removesuffix(".weight"): w.double().numpy() for name, w in student.module.state_dict().items()}
    tokens, hidden = text(seed=0)
    found = guessed(student, tokens, hidden)
    for t in range(len(tokens) - 2):
        x = hidden[t, -1].astype(np.float64)
        for k in range(min(DEPTH, len(tokens) - 2 - t)):
            embedded = TARGET.embed[tokens[t + 1 + k]].astype(np.float64)
            both = np.concatenate([normed(embedded, weights["embed_norm"]), normed(x, weights["hidden_norm"])])
            x = x + weights["mix"] @ both
            seen = normed(x, weights["mlp_norm"])
            gate = weights["mlp.gate_proj"] @ seen
            x = x + weights["mlp.down_proj"] @ (gate / (1 + np.exp(-gate)) * (weights["mlp.up_proj"] @ seen))
            np.testing.assert_allclose(found[k][0][t], x, atol=1e-4, rtol=1e-4)
            np.testing.assert_allclose(found[k][1][t], normed(x, weights["norm"]), atol=1e-4, rtol=1e-4)


def test_an_index_sees_nothing_of_what_comes_later(student: RecurrentStudent) -> None:
    """Neither hidden states after its own token, nor tokens after those it is told were guessed right."""
    (tokens, hidden), (other_tokens, other_hidden), at = text(seed=4), text(seed=5), 7
    before = guessed(student, tokens, hidden)
    for k in range(DEPTH):
        mixed = [*tokens[: at + 2 + k], *other_tokens[at + 2 + k :]]
        after = guessed(student, mixed, np.concatenate([hidden[: at + 1], other_hidden[at + 1 :]]))
        np.testing.assert_array_equal(before[k][0][at], after[k][0][at])
        assert not np.allclose(before[k][0][at + 1], after[k][0][at + 1])


def test_it_starts_from_the_last_layer() -> None:
    state, last = RecurrentStudent(TARGET).module.state_dict(), TARGET.layer(TARGET.layers - 1)
    expected = {
        "embed_norm": np.ones(HIDDEN, np.float32),
        "hidden_norm": last.attn_norm,
        "mlp_norm": last.ffn_norm,
        "mlp.gate_proj": last.gate,
        "mlp.up_proj": last.up,
        "mlp.down_proj": last.down,
        "norm": TARGET.norm,
    }
    for name, values in expected.items():
        np.testing.assert_array_equal(state[f"{name}.weight"].numpy(), values, err_msg=name)
    assert float(state["mix.weight"].std()) == pytest.approx(0.01, rel=0.1)


def test_its_file(tmp_path: Path, student: RecurrentStudent) -> None:
    vocabulary = np.array([0, 1, 4, 28])
    save_drafter(tmp_path, student, TARGET, vocabulary)
    file = DrafterFile(tmp_path)
    assert file.architectures == (ARCHITECTURE,)
    assert (file.size("hidden_size"), file.size("intermediate_size")) == (HIDDEN, INNER)
    assert file.number("rms_norm_eps") == TARGET.eps
    assert (file.size("vocab_size"), file.size("draft_vocab_size")) == (TARGET.vocab_size, len(vocabulary))
    np.testing.assert_array_equal(np.arange(4) + file.ids("d2t", 4), vocabulary)
    again = RecurrentStudent(TARGET)
    load_weights(again, file)
    assert student.module.state_dict().keys() == SHAPES.keys()
    for name, shape in SHAPES.items():
        rounded = student.module.get_parameter(name).bfloat16().float()
        np.testing.assert_array_equal(file.floats(name, *shape), rounded.detach().numpy())
        assert torch.equal(again.module.get_parameter(name), rounded)
