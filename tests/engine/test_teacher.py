from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fakes import RandomCheckpoint, make_request, run, tiny_engine
from matrices import dense
from tiny_models import make_folder, write_gguf

from paceline.engine import teacher as teaching
from paceline.engine.config import EngineConfig
from paceline.engine.model.checkpoint import open_checkpoint
from paceline.engine.model.weights import model_fingerprint
from paceline.engine.teacher import DecoderTeacher, target_of, weights_checksum

CONFIG = EngineConfig(device="cpu", backend="reference")
TOKENS = [int(token) for token in np.random.default_rng(0).integers(0, 31, 40)]


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(31, context_length=64)


def test_states_do_not_depend_on_how_a_text_is_cut(
    checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = DecoderTeacher(checkpoint, CONFIG, (0, 1, 2), 48).hidden(TOKENS)
    assert whole.shape == (40, 3, 48)
    monkeypatch.setattr(teaching, "_ROWS", 7)
    teacher = DecoderTeacher(checkpoint, CONFIG, (0, 1, 2), 48)
    teacher.hidden(TOKENS[::-1])  # what another text left behind is not seen
    np.testing.assert_allclose(teacher.hidden(TOKENS), whole, atol=1e-4, rtol=1e-4)
    with pytest.raises(ValueError, match="longer"):
        teacher.hidden([0] * 49)


def test_the_first_state_is_the_embedding_and_the_last_gives_the_logits(checkpoint: RandomCheckpoint) -> None:
    target = target_of(checkpoint)
    states = DecoderTeacher(checkpoint, CONFIG, (0, 2), 48).hidden(TOKENS)
    np.testing.assert_allclose(states[:, 0], target.embed[TOKENS], atol=1e-6)
    last = states[:, 1]
    normal = last / np.sqrt((last**2).mean(-1, keepdims=True) + target.eps) * target.norm
    engine = tiny_engine(checkpoint)
    for length in (1, 17, 40):
        expected = run(engine, [make_request("r", TOKENS[:length], max_tokens=1)]).tokens("r")
        assert [int((normal[length - 1] @ target.head.T).argmax())] == expected


def test_the_target_holds_the_layers(checkpoint: RandomCheckpoint) -> None:
    target, weights, config = target_of(checkpoint), checkpoint.load(), checkpoint.config
    for layer, stored in zip(map(target.layer, range(target.layers)), weights.layers, strict=True):
        np.testing.assert_array_equal(np.concatenate([layer.q, layer.k, layer.v]), dense(stored.qkv))
        np.testing.assert_array_equal(np.concatenate([layer.gate, layer.up]), dense(stored.gate_up))
        assert len(layer.q) == config.q_rows
        assert len(layer.gate) == target.intermediate
    np.testing.assert_array_equal(target.head, dense(weights.lm_head))
    assert target.trained_for == model_fingerprint(weights)


def test_models_with_the_same_last_norm_are_told_apart_by_their_weights(checkpoint: RandomCheckpoint) -> None:
    other = RandomCheckpoint(31, context_length=64, seed=1)
    assert model_fingerprint(other.load()) == model_fingerprint(checkpoint.load())
    assert weights_checksum(other) != weights_checksum(checkpoint)
    assert weights_checksum(RandomCheckpoint(31, context_length=64)) == weights_checksum(checkpoint)


def test_quantisations_are_told_apart_and_copies_are_not(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", "smollm2")
    files = [write_gguf(folder, tmp_path / f"{kind}.gguf", kind) for kind in ("F32", "Q8_0", "Q4_0")]
    files.append(tmp_path / "copy.gguf")
    files[-1].write_bytes(files[0].read_bytes())
    first, *others, copy = [weights_checksum(open_checkpoint(file, tmp_path)) for file in files]
    assert copy == first
    assert len({first, *others}) == 3
