from __future__ import annotations

import json
from pathlib import Path

import pytest
from training import FRAME, ScriptedWriter

from paceline.spec.training import corpus
from paceline.spec.training.corpus import DialogueFile, frequent, held_out, write_answers, write_dialogues
from paceline.spec.training.dialogues import Dialogue, Recipe, dialogues, write
from paceline.spec.training.target import TrainingError

MAKE = dialogues(FRAME, Recipe(length=120), [(6,), (7,), (8,)], seed=1)
WANTED = 600


def written(path: Path, writer: ScriptedWriter) -> list[Dialogue]:
    file = DialogueFile(path, 29)
    write_dialogues(file, MAKE, writer, WANTED, lambda done, of: None)
    return list(file.first(WANTED)[0].values())


def test_dialogues_are_written_until_there_are_enough_tokens(tmp_path: Path) -> None:
    shares: list[tuple[int, int]] = []
    file = DialogueFile(tmp_path / "d.jsonl", 29)
    write_dialogues(file, MAKE, ScriptedWriter(), WANTED, lambda done, of: shares.append((done, of)))
    numbered, total = file.first(WANTED)
    found = list(numbered.values())
    assert total == sum(len(dialogue.tokens) for dialogue in found) >= WANTED
    assert total - len(found[-1].tokens) < WANTED
    assert shares == sorted(shares)
    assert shares[-1] == (WANTED, WANTED)
    assert all(dialogue.answers for dialogue in found)


def test_few_tokens_are_written_on_until_there_are_enough_texts(tmp_path: Path) -> None:
    shares: list[tuple[int, int]] = []
    file = DialogueFile(tmp_path / "d.jsonl", 29)
    write_dialogues(file, MAKE, ScriptedWriter(), 1, lambda done, of: shares.append((done, of)), fewest=4)
    assert len(file.first(1, 4)[0]) == 4
    assert len(file.first(1)[0]) == 1
    assert set(shares) == {(0, 1), (1, 1)}


@pytest.mark.parametrize("most", [1, 3, 9])
@pytest.mark.parametrize("dies_after", [0, 5, 23])
def test_a_run_that_was_killed_ends_with_the_same_texts(tmp_path: Path, dies_after: int, most: int) -> None:
    whole = written(tmp_path / "whole.jsonl", ScriptedWriter())
    path = tmp_path / "killed.jsonl"
    with pytest.raises(KeyboardInterrupt):
        written(path, ScriptedWriter(most=most, dies_after=dies_after))
    if path.exists():
        path.write_bytes(path.read_bytes() + b'{"index": 99, "tok')  # a line that was being written
    before = len(DialogueFile(path, 29).done)
    assert written(path, ScriptedWriter()) == whole
    assert len(DialogueFile(path, 29).done) >= before


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        '{"index": 0, "tokens": [1, 29], "answers": [[0, 1]]}',
        '{"index": 0, "tokens": [1, 2], "answers": [[0, 3]]}',
        '{"tokens": [1, 2], "answers": [[0, 2]]}',
        "[]",
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps({"index": 0, "tokens": [1], "answers": [[0, 1]]}) + "\n" + line + "\n")
    with pytest.raises(TrainingError, match=r"d\.jsonl, line 2 is damaged"):
        DialogueFile(path, 29)


def test_a_model_that_writes_nothing_is_told_apart(tmp_path: Path) -> None:
    class Silent(ScriptedWriter):
        def advance(self) -> list[tuple[int, list[int]]]:
            return [(key, []) for key, _ in super().advance()]

    with pytest.raises(TrainingError, match="writes nothing"):
        written(tmp_path / "d.jsonl", Silent())


def test_prompts_that_leave_no_room_do_not_blame_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "_PATIENCE", 5)
    make = dialogues(FRAME, Recipe(length=120), [(6,), (7,), (8,)], 1, [(1,) * 120] * 20)
    file = DialogueFile(tmp_path / "d.jsonl", 29)
    write_dialogues(file, make, ScriptedWriter(), WANTED, lambda done, of: None, given=20)
    assert min(file.first(WANTED)[0]) >= 20


def test_answers_come_in_the_order_of_the_prompts() -> None:
    writings = [
        write(FRAME, Recipe(), [()], index, (1, 2, token, 3, 4), [(9,)] * index, more=False)
        for index, token in enumerate((7, 8, 9))
    ]
    found = write_answers(writings, ScriptedWriter(most=2), lambda done, of: None)
    assert [dialogue.tokens[2] for dialogue in found] == [7, 8, 9]
    assert [len(dialogue.answers) for dialogue in found] == [1, 2, 3]


def test_the_commonest_answered_tokens_can_be_guessed() -> None:
    texts = [Dialogue((0, 5, 5, 3, 3, 3, 7), ((1, 7),)), Dialogue((4, 4, 4, 4, 4), ((4, 5),))]
    chosen, share = frequent(texts, 10, 2)
    assert chosen.tolist() == [3, 5]
    assert share == pytest.approx(5 / 7)
    assert frequent(texts, 10, 10)[0].tolist() == list(range(10))


def test_a_tenth_is_held_out_and_never_more_than_sixty() -> None:
    assert held_out(3) == [0, 1]
    assert held_out(100) == list(range(0, 100, 10))
    assert len(held_out(6000)) == 60 == len(set(held_out(6000)))
