"""What `--speculator` names is read as what its files say it is, and refused in one sentence where it does not fit."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import tiny_models
from equality import VOCAB
from fakes import RandomCheckpoint
from tiny_heads import heads_tensors, write_eagle, write_own, write_published, write_recurrent

from paceline.engine.errors import ConfigError, ModelError
from paceline.engine.model.weights import model_fingerprint
from paceline.engine.speculators import Target, find_speculators
from paceline.kernels.backend import load
from paceline.kernels.linear import float_rows
from paceline.spec import pretrained

CHECKPOINT = RandomCheckpoint(VOCAB, head_dim=16)
WEIGHTS = CHECKPOINT.load()
HIDDEN = CHECKPOINT.config.hidden_size
TARGET = Target(CHECKPOINT.config, WEIGHTS, load(), CHECKPOINT.text)


def names(wanted: str) -> list[str]:
    return [speculator.name for speculator in find_speculators(wanted, TARGET)]


def refusal(wanted: str, kind: type[Exception] = ModelError) -> str:
    with pytest.raises(kind) as caught:
        find_speculators(wanted, TARGET)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_kind_is_what_the_files_say(tmp_path: Path) -> None:
    folders = {
        "published": write_published(tmp_path / "p", heads_tensors(HIDDEN, guessable=VOCAB)),
        "medusa": write_own(tmp_path / "anything", "PacelineMedusa", heads_tensors(HIDDEN)),
        "hydra": write_own(tmp_path / "h", "PacelineHydra", heads_tensors(HIDDEN, hydra=True)),
        "eagle": write_eagle(tmp_path / "e", CHECKPOINT.config),
        "recurrent": write_recurrent(tmp_path / "r", CHECKPOINT.config),
        "draft": tiny_models.make_folder(tmp_path / "d", "llama2"),
    }
    assert {kind: names(str(folder)) for kind, folder in folders.items()} == {
        "published": ["medusa"],
        "medusa": ["medusa"],
        "hydra": ["hydra"],
        "eagle": ["eagle"],
        "recurrent": ["recurrent"],
        "draft": ["draft"],
    }
    file = tiny_models.write_gguf(folders["draft"], tmp_path / "d.gguf")
    target = Target(TARGET.config, WEIGHTS, TARGET.ops, TARGET.text, tmp_path)
    assert [each.name for each in find_speculators(str(file), target)] == ["draft"]
    assert names(f"suffix, {folders['hydra']}") == ["suffix", "hydra"]
    assert names("none") == []


def test_what_does_not_fit_is_refused_with_the_mismatch(tmp_path: Path) -> None:
    other = write_own(tmp_path / "o", "PacelineHydra", heads_tensors(HIDDEN * 2, hydra=True))
    assert f"size {HIDDEN * 2}, but this model's have {HIDDEN}" in refusal(str(other))
    strange = write_own(tmp_path / "s", "Seer", heads_tensors(HIDDEN))
    assert "['Seer']; this server reads" in refusal(str(strange))
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "config.json" in refusal(str(empty))
    damaged = write_own(tmp_path / "x", "PacelineMedusa", heads_tensors(HIDDEN))
    (damaged / "model.safetensors").write_bytes(b"12345678")
    assert "model.safetensors" in refusal(str(damaged))
    message = refusal("crystal-ball", ConfigError)
    assert "'crystal-ball'" in message
    assert "auto, none, suffix, grammar" in message
    for wanted in ("", "suffix,", "~no-such-user-here", "a" * 5000):
        assert "There is no speculator" in refusal(wanted, ConfigError)
    assert "no folder or model file './missing'; choose auto" in refusal("./missing", ConfigError)
    for wanted in ("auto,suffix", "suffix, none"):
        assert "stands alone" in refusal(wanted, ConfigError)
    twice = write_own(tmp_path / "m", "PacelineMedusa", heads_tensors(HIDDEN))
    assert "two drafters of the kind 'medusa'; requests could not tell them apart; leave one out." in refusal(
        f"{twice},{twice}", ConfigError
    )


def test_auto_takes_what_is_shipped_for_this_model_and_leaves_out_what_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mark = model_fingerprint(WEIGHTS)
    good = write_own(tmp_path / "a-medusa", "PacelineMedusa", heads_tensors(HIDDEN), trained_for=mark)
    write_own(tmp_path / "b-hydra", "PacelineHydra", heads_tensors(HIDDEN, hydra=True), trained_for=mark + 1)
    write_own(tmp_path / "c-hydra", "PacelineHydra", heads_tensors(16, hydra=True), trained_for=mark)
    monkeypatch.setattr(pretrained, "folders", lambda: sorted(tmp_path.iterdir()))
    with caplog.at_level(logging.WARNING):
        assert names("auto") == ["suffix", "grammar", "medusa"]
    (record,) = caplog.records
    assert record.message.startswith(f"Left out a shipped drafter: The drafter {tmp_path / 'c-hydra'} reads hidden")
    assert names("medusa") == ["medusa"]
    assert good.is_dir()


def test_a_folder_that_is_named_may_be_another_models_and_it_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A fine-tune shares its base's drafters, and guesses never decide what is said."""
    own, other = tmp_path / "own", tmp_path / "other"
    mark = model_fingerprint(WEIGHTS)
    write_own(own, "PacelineMedusa", heads_tensors(HIDDEN), trained_for=mark)
    write_own(other, "PacelineMedusa", heads_tensors(HIDDEN), trained_for=mark + 1)
    with caplog.at_level(logging.WARNING):
        assert names(str(own)) == ["medusa"]
        assert not caplog.records
        assert names(str(other)) == ["medusa"]
    (record,) = caplog.records
    assert record.message.startswith(f"The drafter {other} was trained for another model")


def test_a_shipped_name_wins_over_a_folder_called_so_which_a_path_still_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, shipped, here = model_fingerprint(WEIGHTS), tmp_path / "shipped", tmp_path / "here"
    write_recurrent(shipped / "a-recurrent", CHECKPOINT.config, trained_for=mark + 1)
    write_recurrent(shipped / "b-recurrent", CHECKPOINT.config, trained_for=mark)
    write_own(here / "recurrent", "PacelineMedusa", heads_tensors(HIDDEN))
    write_own(here / "mine", "PacelineHydra", heads_tensors(HIDDEN, hydra=True))
    (here / "suffix").mkdir()
    monkeypatch.setattr(pretrained, "folders", lambda: sorted(shipped.iterdir()))
    monkeypatch.chdir(here)
    assert names("recurrent, suffix, mine") == ["recurrent", "suffix", "hydra"]
    assert names("./recurrent") == names(str(here / "recurrent")) == ["medusa"]
    monkeypatch.setattr(pretrained, "folders", list)  # for another model nothing is shipped
    assert names("recurrent") == ["medusa"]


def test_rows_of_the_head_are_the_targets() -> None:
    whole = float_rows(WEIGHTS.lm_head, np.arange(VOCAB))
    ids = np.array([0, 7, 8, VOCAB - 1])
    assert np.array_equal(float_rows(WEIGHTS.lm_head, ids), whole[ids])
