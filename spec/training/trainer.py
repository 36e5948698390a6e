"""The loop that trains: batches in an order of their own, a falling learning rate, checkpoints to go on from."""

from __future__ import annotations

import io
import math
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from .batches import Batches
from .figures import Figures, figures_of
from .files import write_atomically
from .lesson import Lesson
from .student import Student
from .target import TrainingError

_BATCH = 2048  # padded tokens
_EXAM_BATCH = 4096
_RATE = 1e-3
_LOWEST = 0.03  # of the rate, at the end
_WARM_UP = 50  # steps
_WEIGHT_DECAY = 0.01
_CLIP = 1.0  # norm of a step's gradient
_RECENT = 100  # steps whose mean loss is shown
_EXAM_EVERY = 300  # steps
_SAVE_EVERY_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How long: until `epochs` are through or `minutes` of training are over, whichever is first.

    lessons: guesses in a row that are trained; exam: those that are measured. alone: for what share of the run, from
    its start, only the first guess is trained: such a step costs what one of `lessons` guesses costs, so that a limit
    of minutes holds more of them.
    """

    epochs: float = 3.0
    minutes: float | None = None
    seed: int = 0
    lessons: int = 3
    exam: int = 5
    alone: float = 0.0


@dataclass(slots=True)
class _Course:
    step: int = 0
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)  # the recent ones, all of as many lessons
    history: list[tuple[int, float, float]] = field(default_factory=list)  # step, loss, tokens per step
    lessons: int = 0  # of the last step


Report = Callable[[float, float, Figures], None]  # share that is done, recent loss, the last exam


class Trainer:
    """Trains a student on the texts `train`, examines it on the texts `held`. checkpoint: where its state is kept."""

    def __init__(
        self,
        student: Student,
        lesson: Lesson,
        batches: Batches,
        *,
        train: Sequence[int],
        held: Sequence[int],
        schedule: Schedule,
        checkpoint: Path,
    ) -> None:
        self._student = student
        self._lesson = lesson
        self._batches = batches
        self._train = train
        self._held = held
        self._schedule = schedule
        self._checkpoint = checkpoint
        self._course = _Course()
        parameters = list(student.module.parameters())
        self._optimizer = torch.optim.AdamW(
            [
                {"params": [p for p in parameters if p.ndim > 1], "weight_decay": _WEIGHT_DECAY},
                {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
            ],
            lr=_RATE,
            betas=(0.9, 0.95),
        )

    @property
    def history(self) -> list[tuple[int, float, float]]:
        """(step, recent loss, expected tokens per step) of each exam."""
        return self._course.history

    @property
    def steps(self) -> int:
        return self._course.step

    def examine(self) -> Figures:
        groups = self._batches.grouped(self._held, _EXAM_BATCH, "exam")
        return figures_of(self._lesson.ranks(self._student, map(self._batches.load, groups), self._schedule.exam))

    def run(self, report: Report) -> Figures:
        """To the end, from where the checkpoint is if there is one.

        Raises TrainingError for a damaged one, and for a loss that is not finite: the checkpoint stays as it was.
        """
        self._resume()
        course, schedule = self._course, self._schedule
        groups = self._groups(0)
        if not groups:
            raise TrainingError("There is no text to train on; ask for more with --tokens.")
        steps = max(1, int(len(groups) * schedule.epochs))
        exam = self.examine()
        saved = now = time.monotonic()
        for group in self._remaining():
            done = course.step / steps
            if schedule.minutes is not None:
                done = max(done, course.seconds / 60 / schedule.minutes)
            report(min(done, 1.0), self._recent(), exam)
            if done >= 1:
                break
            self._step(group, done)
            course.seconds += time.monotonic() - now
            now = time.monotonic()
            if course.step % _EXAM_EVERY == 0:
                exam = self.examine()
                course.history.append((course.step, self._recent(), exam.trees[8]))
                now = time.monotonic()  # exams are not training
            if now - saved >= _SAVE_EVERY_S:
                self._save()
                saved = now
        self._save()
        return self.examine()

    def _groups(self, epoch: int) -> list[list[int]]:
        return self._batches.grouped(self._train, _BATCH, f"{self._schedule.seed}/{epoch}")

    def _remaining(self) -> Iterator[list[int]]:
        """What comes after the steps that were made: the order depends on the seed and the epoch alone."""
        epoch, passed = 0, self._course.step
        while True:
            groups = self._groups(epoch)
            yield from groups[passed:]
            passed = max(0, passed - len(groups))
            epoch += 1

    def _recent(self) -> float:
        losses = self._course.losses
        return sum(losses) / len(losses) if losses else math.nan

    def _step(self, group: Sequence[int], done: float) -> None:
        course = self._course
        rate = _RATE * min(1.0, (course.step + 1) / _WARM_UP)
        rate *= 0.5 * (1 + math.cos(math.pi * done)) * (1 - _LOWEST) + _LOWEST
        for part in self._optimizer.param_groups:
            part["lr"] = rate
        lessons = 1 if done < self._schedule.alone else self._schedule.lessons
        if lessons != course.lessons:  # losses of other guesses say nothing about these
            course.losses, course.lessons = [], lessons
        loss = self._lesson.loss(self._student, self._batches.load(group), lessons)
        value = loss.item()
        self._optimizer.zero_grad()
        if loss.requires_grad:  # not where a batch has nothing the model said
            loss.backward()  # type: ignore[no-untyped-call]
            norm = torch.nn.utils.clip_grad_norm_(self._student.module.parameters(), _CLIP)
            if not (math.isfinite(value) and norm.isfinite()):  # a step would spoil all weights
                raise TrainingError(
                    f"Training broke at step {course.step + 1}, where the loss or its gradient is not a finite number; "
                    "start again in another --out, from an earlier --start or with other text (--seed, --text)."
                )
            self._optimizer.step()
        course.losses = [*course.losses, value][-_RECENT:]
        course.step += 1

    def _save(self) -> None:
        course = self._course
        buffer = io.BytesIO()
        torch.save(
            {
                "step": course.step,
                "seconds": course.seconds,
                "losses": course.losses,
                "history": course.history,
                "lessons": course.lessons,
                "module": self._student.module.state_dict(),
                "optimizer": self._optimizer.state_dict(),
            },
            buffer,
        )
        write_atomically(self._checkpoint, buffer.getvalue())

    def _resume(self) -> None:
        if not self._checkpoint.exists():
            return
        device = next(self._student.module.parameters()).device
        try:
            state: dict[str, Any] = torch.load(self._checkpoint, map_location=device, weights_only=True)
            self._student.module.load_state_dict(state["module"])
            self._optimizer.load_state_dict(state["optimizer"])
            self._course = _Course(
                state["step"], state["seconds"], state["losses"], state["history"], state.get("lessons", 0)
            )
        except (RuntimeError, KeyError, ValueError, TypeError, EOFError, OSError, pickle.UnpicklingError) as error:
            raise TrainingError(
                f"The checkpoint {self._checkpoint} is damaged; delete it, and training starts again with the texts "
                "and hidden states that are there."
            ) from error
