from __future__ import annotations

from collections.abc import Sequence

from paceline.spec.training.dialogues import Dialogue, Frame, Recipe, Tokens, Wish, Writing, dialogues, write

FRAME = Frame(before=(1, 2), between=(3, 4), again=(3, 5))
RECIPE = Recipe(user_tokens=5, answer_tokens=6, length=64, more_turns=0.0)


def played(writing: Writing, replies: Sequence[Sequence[int]]) -> tuple[Dialogue | None, list[Wish]]:
    """What comes of a conversation in which this is written."""
    wishes: list[Wish] = []
    waiting = iter(replies)
    try:
        wishes.append(next(writing))
        while True:
            wishes.append(writing.send(next(waiting)))
    except StopIteration as stop:
        return stop.value, wishes


def test_a_conversation_is_the_template_s_tokens_around_what_is_written() -> None:
    dialogue, wishes = played(write(FRAME, RECIPE, [(9,)], 0), [[10, 11], [20, 21, 22]])
    assert dialogue == Dialogue((1, 2, 9, 10, 11, 3, 4, 20, 21, 22, 3), ((7, 11),))
    assert [wish.prompt for wish in wishes] == [(1, 2, 9), (1, 2, 9, 10, 11, 3, 4)]
    assert [wish.max_tokens for wish in wishes] == [5, 6]
    assert wishes[0].seed != wishes[1].seed


def test_an_answer_that_was_cut_off_has_no_end_to_learn() -> None:
    dialogue, _ = played(write(FRAME, RECIPE, [(9,)], 0), [[10], [20] * 6])
    assert dialogue == Dialogue((1, 2, 9, 10, 3, 4, *[20] * 6), ((6, 12),))


def test_more_turns_follow_where_the_recipe_says_so() -> None:
    recipe = Recipe(user_tokens=5, answer_tokens=6, length=200, more_turns=1.0)
    dialogue, wishes = played(write(FRAME, recipe, [()], 0), [[10], [20], [11], [21], [], []])
    assert dialogue is not None
    assert dialogue.tokens[:14] == (1, 2, 10, 3, 4, 20, 3, 5, 11, 3, 4, 21, 3, 5)
    assert dialogue.answers == ((5, 7), (11, 13))
    assert len(wishes) == 6


def test_nothing_comes_of_an_empty_turn() -> None:
    assert played(write(FRAME, RECIPE, [()], 0), [[]])[0] is None


def test_given_prompts_are_answered_turn_by_turn() -> None:
    given, turns = (1, 2, 30, 3, 4), [(31,)]
    writing = write(FRAME, Recipe(answer_tokens=6, length=200, more_turns=1.0), [()], 0, given, turns, more=False)
    dialogue, wishes = played(writing, [[20], [21]])
    assert dialogue == Dialogue((*given, 20, 3, 5, 31, 3, 4, 21, 3), ((5, 7), (11, 13)))
    assert wishes[0].prompt == given


def test_a_prompt_without_room_for_an_answer_is_left_out() -> None:
    assert played(write(FRAME, RECIPE, [()], 0, (1,) * 60), [])[0] is None


def test_each_depends_on_the_seed_and_its_number_alone() -> None:
    def first(seed: int, index: int, prompts: Sequence[Tokens] = ()) -> Wish:
        return next(dialogues(FRAME, RECIPE, [(6,), (7,), (8,)], seed, prompts)(index))

    assert first(0, 3) == first(0, 3)
    assert len({first(seed, index).seed for seed in (0, 1) for index in range(5)}) == 10
    assert first(0, 0, [(1, 2, 3)]).prompt == (1, 2, 3)
    assert first(0, 1, [(1, 2, 3)]) == first(0, 1)
