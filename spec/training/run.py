"""A whole training run: texts, hidden states, training, files and report; each stage goes on where it was left."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from .batches import Batches
from .corpus import DialogueFile, frequent, held_out, write_dialogues
from .dialogues import Dialogue, Frame, Recipe, Tokens, dialogues
from .draft_student import DraftStudent
from .eagle_student import EagleStudent
from .export import Tensors, load_weights, save_drafter
from .figures import Figures, figures_of
from .files import REPORT, WORK, run_folder, write_atomically
from .heads import HeadsStudent
from .lesson import Lesson
from .recurrent_student import RecurrentStudent
from .states import hidden_states, stored
from .student import Student
from .target import Target, Teacher, TrainingError, Writer
from .trainer import Schedule, Trainer

Kind = Literal["eagle", "recurrent", "medusa", "hydra", "draft"]
HEADS = 4
DRAFT_LAYERS = 4
FEWEST_TEXTS = 3  # that are learned from, however few tokens are asked for: two are held out
EXAM_DEPTH = 5  # of a drafter that can guess any number in a row
_LESSONS: Mapping[Kind, int] = {"eagle": 3, "recurrent": 3, "draft": 1}  # guesses in a row that are trained; else all
# Of a run whose guesses share their weights: so long, from its start, only the first guess is trained, whose steps cost
# a third. Under a limit of minutes that makes up to 0.4 * 3 + 0.6 = 1.8 times the steps.
_ALONE = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run is asked for.

    vocab: how many tokens can be guessed, None for all. layers: of a draft model. prompts: conversations up to where
    the model answers; texts: ones that were held. start: a drafter of this kind that is trained further. companions:
    files that shall lie beside the drafter's own.
    """

    kind: Kind
    tokens: int
    vocab: int | None
    epochs: float
    minutes: float | None
    seed: int
    frame: Frame
    openings: Sequence[Tokens]
    recipe: Recipe = field(default_factory=Recipe)
    prompts: Sequence[Tokens] = ()
    texts: Sequence[Dialogue] = ()
    layers: int = DRAFT_LAYERS
    start: Tensors | None = None
    companions: Mapping[str, bytes] = field(default_factory=dict)


class Progress(Protocol):
    def report(self, stage: str, share: float, note: str = "") -> None:
        """share: 0 … 1 of the stage."""
        ...


def taps_of(kind: Kind, layers: int) -> tuple[int, ...]:
    """After how many layers hidden states are read, the last always: an early, a middle and the last for EAGLE-3."""
    return tuple(sorted({max(1, layers // 3), max(1, 2 * layers // 3), layers})) if kind == "eagle" else (layers,)


def make_student(
    kind: Kind, target: Target, taps: tuple[int, ...], *, heads: int = HEADS, layers: int = DRAFT_LAYERS
) -> Student:
    if kind == "draft":
        return DraftStudent(target, layers)
    if kind == "recurrent":
        return RecurrentStudent(target)
    return EagleStudent(target, taps) if kind == "eagle" else HeadsStudent(target, heads, sequential=kind == "hydra")


def best_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def train(
    plan: Plan,
    folder: Path,
    settings: Mapping[str, object],
    about: Mapping[str, object],
    *,
    target: Callable[[], Target],
    writer: Callable[[], Writer],
    teacher: Callable[[Sequence[int]], Teacher],
    vocab_size: int,
    layers: int,
    progress: Progress,
) -> Mapping[str, object]:
    """Returns the report, which also lies in the folder. What is given as a function is made only when it is needed.

    settings: what must be the same when the run goes on. about: what the report says besides. Raises TrainingError.
    """
    if plan.kind == "draft" and plan.layers > layers:
        raise TrainingError(f"The model has {layers} layers and can give no draft model {plan.layers}; ask for fewer.")
    with run_folder(folder, settings) as work:
        done = folder / REPORT
        if done.exists():
            try:
                finished: Mapping[str, object] = json.loads(done.read_bytes())
            except ValueError as error:
                raise TrainingError(f"{done} is damaged; delete it, and the run ends again.") from error
            return finished
        if plan.start is not None:  # what does not fit is refused before hours of writing
            load_weights(make_student(plan.kind, target(), taps_of(plan.kind, layers)), plan.start)
        texts, answered = _texts(plan, work, vocab_size, writer, progress)
        goal = target()
        taps = taps_of(plan.kind, layers)
        states = hidden_states(
            work / "hidden.f16",
            texts,
            taps,
            goal.hidden_size,
            teacher,
            lambda rows, of: progress.report("reading", rows / of),
        )
        prompts = {"prompts": len(plan.prompts), "answered_prompts": answered} if plan.prompts else {}
        report = {**about, **prompts, **_learn(plan, folder, work, goal, taps, texts, states, progress)}
        write_atomically(done, json.dumps(report, indent=1).encode())
        return report


def _texts(
    plan: Plan, work: Path, vocab_size: int, writer: Callable[[], Writer], progress: Progress
) -> tuple[list[Dialogue], int]:
    """What is learned from, and how many prompts are answered in it."""
    texts, answered, given = list(plan.texts), 0, len(plan.prompts)
    wanted, fewest = plan.tokens - sum(len(text.tokens) for text in texts), FEWEST_TEXTS - len(texts)
    if wanted > 0 or fewest > 0:
        wanted = max(wanted, 1)
        file = DialogueFile(work / "dialogues.jsonl", vocab_size)
        written, total = file.first(wanted, fewest)
        if total < wanted or len(written) < fewest:
            make = dialogues(plan.frame, plan.recipe, plan.openings, plan.seed, plan.prompts)

            def report(so_far: int, of: int) -> None:
                progress.report("writing", so_far / of)

            write_dialogues(file, make, writer(), wanted, report, given, fewest)
            written, _ = file.first(wanted, fewest)
        texts += written.values()
        answered = sum(index < given for index in written)
    return texts, answered


def _learn(
    plan: Plan,
    folder: Path,
    work: Path,
    target: Target,
    taps: tuple[int, ...],
    texts: Sequence[Dialogue],
    states: NDArray[np.float16],
    progress: Progress,
) -> dict[str, object]:
    device = best_device()
    held = held_out(len(texts))
    learned = sorted(set(range(len(texts))) - set(held))
    vocabulary, share = frequent([texts[i] for i in learned], target.vocab_size, plan.vocab or target.vocab_size)
    torch.manual_seed(plan.seed)
    student = make_student(plan.kind, target, taps, layers=plan.layers)
    if plan.start is not None:
        load_weights(student, plan.start)
    student.module.to(device)
    lesson = Lesson(target, vocabulary, device)
    depth = EXAM_DEPTH if plan.kind in _LESSONS else HEADS
    lessons = _LESSONS.get(plan.kind, depth)
    alone = _ALONE if plan.kind in _LESSONS and lessons > 1 else 0.0
    trainer = Trainer(
        student,
        lesson,
        Batches(texts, states, lesson.embed),
        train=learned,
        held=held,
        schedule=Schedule(
            epochs=plan.epochs,
            minutes=plan.minutes,
            seed=plan.seed,
            lessons=lessons,
            exam=depth,
            alone=alone,
        ),
        checkpoint=work / "checkpoint.pt",
    )

    def report(part: float, loss: float, exam: Figures) -> None:
        progress.report("training", part, f"loss {loss:.3f}, {exam.line()}")

    figures = trainer.run(report)
    save_drafter(folder, student, target, vocabulary, plan.companions)
    return {
        "kind": plan.kind,
        "figures": figures.record(),
        "texts": len(texts),
        "held_out_texts": len(held),
        "tokens": sum(len(text.tokens) for text in texts),
        "answered_tokens": sum(end - start for text in texts for start, end in text.answers),
        "guessable_tokens": len(vocabulary),
        "share_of_answers_guessable": round(share, 5),
        "taps": list(taps),
        "lessons": lessons,
        "alone": alone,
        "steps": trainer.steps,
        "history": trainer.history,
        "work": WORK,
    }


def measure(
    student: Student,
    target: Target,
    vocabulary: NDArray[np.int64],
    texts: Sequence[Dialogue],
    teacher: Teacher,
    depth: int,
    report: Callable[[int, int], None],
) -> Figures:
    """What a drafter that is already trained is worth on these texts."""
    states = []
    for number, text in enumerate(texts, 1):
        states.append(stored(teacher.hidden(text.tokens)))
        report(number, len(texts))
    device = best_device()
    student.module.to(device)
    lesson = Lesson(target, vocabulary, device)
    batches = Batches(texts, np.concatenate(states), lesson.embed)
    groups = batches.grouped(range(len(texts)), 4096, "exam")
    return figures_of(lesson.ranks(student, map(batches.load, groups), depth))
