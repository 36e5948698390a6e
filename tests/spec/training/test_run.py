"""Whole runs with a scripted model: what is learned, and that a run killed anywhere ends as if it had not been."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from training import FRAME, Quiet, ScriptedTeacher, ScriptedWriter, random_target

from paceline.engine.drafter_file import DrafterFile
from paceline.spec.training import files, run, states, trainer
from paceline.spec.training.dialogues import Dialogue, Recipe
from paceline.spec.training.export import load_weights
from paceline.spec.training.lesson import Lesson
from paceline.spec.training.recurrent_student import RecurrentStudent
from paceline.spec.training.run import HEADS, Kind, Plan, make_student, measure, taps_of, train
from paceline.spec.training.student import Examples, Student
from paceline.spec.training.target import Floats, TrainingError

TARGET = random_target()
PLAN = Plan(
    kind="eagle",
    tokens=900,
    vocab=24,
    epochs=2,
    minutes=None,
    seed=0,
    frame=FRAME,
    openings=[(6,), (7,), (8,), (9,)],
    recipe=Recipe(length=120),
    layers=2,
)


def one_run(
    folder: Path,
    plan: Plan = PLAN,
    *,
    writer: ScriptedWriter | None = None,
    reader_dies_after: int | None = None,
    progress: Quiet | None = None,
    **settings: object,
) -> dict[str, Any]:
    def teacher(taps: Sequence[int]) -> ScriptedTeacher:
        return ScriptedTeacher(TARGET, taps, reader_dies_after)

    return dict(
        train(
            plan,
            folder,
            settings,
            {"model": "scripted"},
            target=lambda: TARGET,
            writer=lambda: writer or ScriptedWriter(),
            teacher=teacher,
            vocab_size=TARGET.vocab_size,
            layers=TARGET.layers,
            progress=progress or Quiet(),
        )
    )


@pytest.fixture(scope="module", autouse=True)
def small_steps() -> Iterator[None]:
    """Many of them in little text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "_BATCH", 160)
        patch.setattr(trainer, "_WARM_UP", 5)
        yield


@pytest.fixture(scope="module")
def whole(small_steps: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    one_run(folder)
    return folder


@pytest.mark.parametrize("kind", ["eagle", "recurrent", "medusa", "hydra", "draft"])
def test_a_toy_language_is_learned(tmp_path: Path, kind: Kind) -> None:
    """Each token follows from the one before it."""
    progress = Quiet()
    report = one_run(tmp_path / "run", replace(PLAN, kind=kind, epochs=20), progress=progress)
    losses = [float(note.split()[1].rstrip(",")) for _, note in progress.stages["training"] if "nan" not in note]
    assert losses[-1] < 0.9 * losses[0]
    assert "tokens per step" in progress.stages["training"][-1][1]
    if kind in ("eagle", "recurrent", "draft"):  # heads are further from what they shall say, and these are few steps
        assert report["figures"]["by_depth_and_rank"][0][0] > 0.5
    assert report["tokens"] >= PLAN.tokens
    assert report["model"] == "scripted"
    expected = {"eagle": (3, 0.4), "recurrent": (3, 0.4), "draft": (1, 0.0)}.get(kind, (HEADS, 0.0))
    assert (report["lessons"], report["alone"]) == expected


def test_a_finished_run_only_shows_its_report(whole: Path) -> None:
    def nobody() -> Any:
        raise AssertionError("the run is over")

    report = json.loads((whole / files.REPORT).read_bytes())
    arguments: dict[str, Any] = {"vocab_size": 29, "layers": 2, "progress": Quiet(), "teacher": nobody}
    assert train(PLAN, whole, {}, {}, target=nobody, writer=nobody, **arguments) == report


def same_files(folder: Path, whole: Path) -> None:
    for name in ("config.json", "model.safetensors", files.REPORT):
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name


def test_killed_while_writing(tmp_path: Path, whole: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        one_run(tmp_path / "run", writer=ScriptedWriter(dies_after=15))
    one_run(tmp_path / "run")
    same_files(tmp_path / "run", whole)


def test_killed_while_reading(tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "_EVERY", 300)
    with pytest.raises(KeyboardInterrupt):
        one_run(tmp_path / "run", reader_dies_after=12)
    one_run(tmp_path / "run", writer=ScriptedWriter(dies_after=0))  # nothing is written again
    same_files(tmp_path / "run", whole)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
def test_killed_while_training(tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    monkeypatch.setattr(trainer, "_SAVE_EVERY_S", 0.0)
    with pytest.raises(KeyboardInterrupt):
        one_run(tmp_path / "run", progress=Quiet(("training", share)))
    progress = Quiet()
    one_run(tmp_path / "run", writer=ScriptedWriter(dies_after=0), reader_dies_after=0, progress=progress)
    assert progress.stages["training"][0][0] >= share - 0.1  # it went on
    same_files(tmp_path / "run", whole)


def ticking() -> SimpleNamespace:
    """A clock that is a second further each time it is read, so that each step takes one."""
    return SimpleNamespace(monotonic=itertools.count(0.0).__next__)


def test_killed_while_training_under_a_limit_of_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The learning rate and the number of lessons follow the time that training took, which a run takes up again."""
    monkeypatch.setattr(trainer, "_SAVE_EVERY_S", 0.0)
    plan = replace(PLAN, epochs=1000, minutes=10 / 60)
    for folder, dies_at in (("whole", None), ("run", ("training", 0.5)), ("run", None)):
        monkeypatch.setattr(trainer, "time", ticking())
        with pytest.raises(KeyboardInterrupt) if dies_at else nullcontext():
            one_run(tmp_path / folder, plan, progress=Quiet(dies_at))
    same_files(tmp_path / "run", tmp_path / "whole")
    assert json.loads((tmp_path / "run" / files.REPORT).read_bytes())["steps"] == 10


def test_exams_before_an_end_are_in_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "_SAVE_EVERY_S", 0.0)
    monkeypatch.setattr(trainer, "_EXAM_EVERY", 2)
    one_run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        one_run(tmp_path / "run", progress=Quiet(("training", 0.5)))
    report = one_run(tmp_path / "run")
    assert [entry[0] for entry in report["history"]] == list(range(2, report["steps"] + 1, 2))
    same_files(tmp_path / "run", tmp_path / "whole")


def test_the_first_guess_is_trained_alone_before_all_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the loss that is shown is of the steps that trained as many guesses as now."""
    real, asked = Lesson.loss, []

    def noted(lesson: Lesson, student: Student, examples: Examples, depth: int) -> Tensor:
        loss = real(lesson, student, examples, depth)
        asked.append((depth, loss.item()))
        return loss

    monkeypatch.setattr(Lesson, "loss", noted)
    progress = Quiet()
    one_run(tmp_path / "run", progress=progress)
    alone = math.ceil(0.4 * len(asked))
    assert [depth for depth, _ in asked] == [1] * alone + [3] * (len(asked) - alone)
    note = progress.stages["training"][alone + 1][1]
    assert note.startswith(f"loss {asked[alone][1]:.3f},")


def test_a_draft_model_is_trained_on_after_an_end_and_has_its_companions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(PLAN, kind="draft", vocab=None, companions={"tokenizer.json": b"{}"})
    one_run(tmp_path / "whole", plan)
    monkeypatch.setattr(trainer, "_SAVE_EVERY_S", 0.0)
    with pytest.raises(KeyboardInterrupt):
        one_run(tmp_path / "run", plan, progress=Quiet(("training", 0.5)))
    assert not (tmp_path / "run" / "tokenizer.json").exists()
    one_run(tmp_path / "run", plan, writer=ScriptedWriter(dies_after=0), reader_dies_after=0)
    same_files(tmp_path / "run", tmp_path / "whole")
    assert (tmp_path / "run" / "tokenizer.json").read_bytes() == b"{}"


def test_a_draft_model_of_more_layers_than_there_are_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="has 2 layers and can give no draft model 3"):
        one_run(tmp_path / "run", replace(PLAN, kind="draft", layers=3))


def test_killed_between_the_weights_and_the_report(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run, "save_drafter", dies)
        with pytest.raises(KeyboardInterrupt):
            one_run(tmp_path / "run")
    one_run(tmp_path / "run")
    same_files(tmp_path / "run", whole)


def test_a_damaged_checkpoint_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "_SAVE_EVERY_S", 0.0)
    with pytest.raises(KeyboardInterrupt):
        one_run(tmp_path / "run", progress=Quiet(("training", 0.5)))
    checkpoint = tmp_path / "run" / "work" / "checkpoint.pt"
    content = checkpoint.read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"nonsense" * 99):
        checkpoint.write_bytes(damaged)
        with pytest.raises(TrainingError, match=r"checkpoint\.pt is damaged; delete it"):
            one_run(tmp_path / "run")


def test_minutes_end_a_run_before_its_epochs(tmp_path: Path) -> None:
    report = one_run(tmp_path / "run", replace(PLAN, epochs=1e6, minutes=0.005))
    assert 0 < report["steps"] < 10_000


def test_however_few_tokens_are_asked_for_there_is_text_to_hold_out(tmp_path: Path) -> None:
    report = one_run(tmp_path / "run", replace(PLAN, tokens=1))
    assert (report["texts"], report["held_out_texts"]) == (3, 2)
    held = [Dialogue(tuple(range(1, 21)), ((2, 20),))]
    assert one_run(tmp_path / "held", replace(PLAN, tokens=1, texts=held))["texts"] == 3


@pytest.mark.parametrize("kind", ["eagle", "recurrent", "medusa", "hydra", "draft"])
def test_what_was_trained_is_read_again_and_measures_the_same(tmp_path: Path, kind: Kind) -> None:
    """Up to the rounding of the weights to bfloat16; on the texts it was trained on."""
    report = one_run(tmp_path / "run", replace(PLAN, kind=kind, vocab=None if kind == "draft" else PLAN.vocab))
    file = DrafterFile(tmp_path / "run")
    if kind in ("eagle", "recurrent"):
        vocabulary = np.arange(24) + file.tensor("d2t", 24)
    elif kind == "draft":
        vocabulary = np.arange(TARGET.vocab_size)
    else:
        vocabulary = file.tensor("vocabulary", 24)
        assert f"{HEADS - 1}.0.linear.bias" in file
    assert file.config["trained_for"] == TARGET.trained_for
    taps = taps_of(kind, TARGET.layers)
    student = make_student(kind, TARGET, taps, layers=PLAN.layers)
    load_weights(student, file)
    texts, _ = run._texts(PLAN, tmp_path / "run" / "work", TARGET.vocab_size, ScriptedWriter, Quiet())
    depth = len(report["figures"]["by_depth_and_rank"])
    figures = measure(student, TARGET, vocabulary, texts, ScriptedTeacher(TARGET, taps), depth, lambda done, of: None)
    assert figures.chain == pytest.approx(report["figures"]["chain"], abs=0.35)


def test_states_too_large_for_a_float16_can_be_measured() -> None:
    class Loud(ScriptedTeacher):
        def hidden(self, tokens: Sequence[int]) -> Floats:
            return super().hidden(tokens) * np.float32(1e6)

    taps, texts = taps_of("recurrent", TARGET.layers), [Dialogue(tuple(range(9)), ((0, 9),))]
    seen: list[bool] = []

    class Watched(RecurrentStudent):
        def guesses(self, examples: Examples, depth: int) -> Iterator[Tensor]:
            seen.append(bool(examples.hidden.isfinite().all()))
            return super().guesses(examples, depth)

    measure(Watched(TARGET), TARGET, np.arange(24), texts, Loud(TARGET, taps), 2, lambda done, of: None)
    assert seen == [True]


def test_a_loss_that_is_not_finite_ends_the_run_before_anything_is_spoilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "_SAVE_EVERY_S", 0.0)
    real, steps = Lesson.loss, 0

    def breaks(*arguments: Any) -> Tensor:
        nonlocal steps
        steps += 1
        return real(*arguments) * (float("nan") if steps == 4 else 1.0)

    monkeypatch.setattr(Lesson, "loss", breaks)
    with pytest.raises(TrainingError, match="broke at step 4, where the loss"):
        one_run(tmp_path / "run")
    state = torch.load(tmp_path / "run" / "work" / "checkpoint.pt", weights_only=True)
    assert state["step"] == 3
    assert all(values.isfinite().all() for values in state["module"].values())
