"""The texts a drafter learns from: written by the model, kept line by line, so that a run can go on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dialogues import Dialogue, Wish, Writing
from .target import TrainingError, Writer

_PATIENCE = 1000  # dialogues in a row of which nothing came


class DialogueFile:
    """JSON lines of `index`, `tokens` and `answers`, in the order in which dialogues were finished.

    A line that was cut off by the end of a run is dropped. Raises TrainingError for any other that cannot be read.
    """

    def __init__(self, path: Path, vocab_size: int) -> None:
        self._path = path
        self.done: dict[int, Dialogue | None] = {}
        raw = path.read_bytes() if path.exists() else b""
        whole = raw.rfind(b"\n") + 1
        if whole < len(raw):
            with path.open("r+b") as file:
                file.truncate(whole)
        for number, line in enumerate(raw[:whole].splitlines(), 1):
            try:
                index, dialogue = _parse(json.loads(line), vocab_size)
            except (ValueError, KeyError, TypeError) as error:
                raise TrainingError(f"{path}, line {number} is damaged; delete the line, or the file.") from error
            self.done[index] = dialogue

    def add(self, index: int, dialogue: Dialogue | None) -> None:
        self.done[index] = dialogue
        tokens, answers = (dialogue.tokens, dialogue.answers) if dialogue else ((), ())
        with self._path.open("a", encoding="ascii") as file:
            file.write(json.dumps({"index": index, "tokens": tokens, "answers": answers}) + "\n")

    def first(self, wanted: int, fewest: int = 0) -> tuple[dict[int, Dialogue], int]:
        """The dialogues 0, 1, … until they have `wanted` tokens and are `fewest`, and how many tokens they have: fewer
        of either where one is missing. A number of which nothing came is left out.

        In the order of their numbers, not of their ends: a run that was interrupted has the same texts.
        """
        found: dict[int, Dialogue] = {}
        total = index = 0
        while (total < wanted or len(found) < fewest) and index in self.done:
            if dialogue := self.done[index]:
                found[index] = dialogue
                total += len(dialogue.tokens)
            index += 1
        return found, total


def _parse(record: Any, vocab_size: int) -> tuple[int, Dialogue | None]:
    index, tokens = int(record["index"]), tuple(map(int, record["tokens"]))
    answers = tuple((int(start), int(end)) for start, end in record["answers"])
    if index < 0 or any(not 0 <= token < vocab_size for token in tokens):
        raise ValueError("a number that cannot be")
    if any(not 0 <= start < end <= len(tokens) for start, end in answers):
        raise ValueError("an answer that lies outside")
    return index, Dialogue(tokens, answers) if answers else None


def write_dialogues(
    file: DialogueFile,
    make: Callable[[int], Writing],
    writer: Writer,
    wanted: int,
    report: Callable[[int, int], None],
    given: int = 0,
    fewest: int = 0,
) -> None:
    """Have dialogues written until there are `wanted` tokens of them, and they are `fewest`, however long.

    report: (tokens so far, of how many).

    given: how many begin with somebody's prompts, which may leave no room, and say nothing about the model.
    Raises TrainingError when nothing comes.
    """
    active: dict[int, Writing] = {}
    upcoming = useless = 0

    def proceed(index: int, writing: Writing, written: Sequence[int] | None) -> None:
        nonlocal useless
        try:
            wish: Wish = writing.send(written)  # type: ignore[arg-type]  # None starts a generator
        except StopIteration as stop:
            active.pop(index, None)
            file.add(index, stop.value)
            if index >= given:
                useless = 0 if stop.value else useless + 1
            if useless > _PATIENCE:
                raise TrainingError(
                    "The model writes nothing: it ends every text at once; give it prompts with --prompts, and choose "
                    "another --out, too."
                ) from None
        else:
            active[index] = writing
            writer.begin(index, wish)

    while True:
        found, total = file.first(wanted, fewest)
        report(min(total, wanted), wanted)
        if total >= wanted and len(found) >= fewest:
            return
        while len(active) < writer.most:
            while upcoming in file.done or upcoming in active:
                upcoming += 1
            proceed(upcoming, make(upcoming), None)
        for index, written in writer.advance():
            proceed(index, active[index], written)


def write_answers(writings: Sequence[Writing], writer: Writer, report: Callable[[int, int], None]) -> list[Dialogue]:
    """All of these, to their ends; those of which nothing came are left out."""
    ends: dict[int, Dialogue | None] = {}
    active: dict[int, Writing] = {}
    waiting = list(enumerate(writings))
    asked: list[tuple[int, Writing, Sequence[int] | None]] = []
    while len(ends) < len(writings):
        while waiting and len(active) < writer.most:
            index, writing = waiting.pop(0)
            active[index] = writing
            asked.append((index, writing, None))
        for index, writing, written in asked:
            try:
                writer.begin(index, writing.send(written))  # type: ignore[arg-type]
            except StopIteration as stop:
                ends[index] = stop.value
                del active[index]
        report(len(ends), len(writings))
        asked = [(index, active[index], written) for index, written in writer.advance()] if active else []
    return [dialogue for _, dialogue in sorted(ends.items()) if dialogue]


def frequent(texts: Sequence[Dialogue], vocab_size: int, count: int) -> tuple[NDArray[np.int64], float]:
    """The `count` tokens the model answers with most, ascending, and their share of all it answered.

    The head is half of what a drafter of one layer costs: rare tokens are not worth it (Zhao et al., FR-Spec, arXiv
    2502.14856; EAGLE-3 does the same).
    """
    counts = np.zeros(vocab_size, np.int64)
    for text in texts:
        for start, end in text.answers:
            counts += np.bincount(text.tokens[start:end], minlength=vocab_size)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:count])
    return chosen, float(counts[chosen].sum() / max(counts.sum(), 1))


def held_out(count: int, most: int = 60) -> list[int]:
    """Which of so many texts are kept for measuring: evenly spread, a tenth at most, two at least."""
    kept = min(most, max(2, count // 10), count)
    return [index * count // kept for index in range(kept)]
