"""Conversations a model writes with itself: a user turn sampled from the bare chat template, then the answer.

Text of the model's own making is what its drafters must guess, and needs no data set (self-distillation, as in Medusa,
arXiv 2401.10774, section 2.3; sampling the user's side too, as in Magpie, arXiv 2406.08464).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

Tokens = tuple[int, ...]

# First words for the user's turns: left alone, a model asks for the same few things again and again.
OPENINGS = (
    "", "", "", "", "What", "What is", "What are", "Why", "Why do", "How", "How do I", "How does", "Who", "Who was",
    "When did", "Where", "Which", "Can you", "Could you explain", "Please", "Please write", "Is it", "Tell me about",
    "Describe", "Explain", "Explain in detail", "Define", "Compare", "Discuss", "Give me", "Give an example of", "List",
    "List five", "Name", "Write", "Write a short story about", "Write a poem", "Write an email", "Write a letter",
    "Write a blog post about", "Write a Python function that", "Write a program", "Write an essay",
    "Write a product description", "Draft", "Create", "Create a plan", "Design", "Suggest", "Recommend",
    "I need help with", "I want to", "I am", "I'm writing", "My", "Imagine", "Suppose", "Act as", "You are", "Pretend",
    "Help me", "Plan", "Rewrite", "Rewrite this sentence:", "Edit", "Correct the grammar:", "Paraphrase", "Simplify",
    "Summarize", "Summarize the following text:\n\n", "Summarize this article in three sentences:\n\n", "Summarize:",
    "Write a summary of the following passage:\n\n", "Give the key points of this text:\n\n", "Translate",
    "Translate into English:", "Translate German to English:", "Translate the following sentence into Spanish:",
    "Extract", "Classify", "Identify", "Evaluate", "Analyze", "Read the passage and answer the question.\n\n",
    "Answer the question using the context below.\n\nContext:",
    "Based on the following documents, answer the question.\n\nDocument 1:", "Use the facts below to answer:\n\n",
    "Solve", "Calculate", "Find", "If", "A", "The", "There are", "John has", "A train", "In a class", "What is the sum",
    "Let", "Prove", "Given", "In the year", "During", "Once upon a time",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Frame:
    """The chat template's own tokens around what people and the model say.

    before: up to the first user turn. between: from a user turn to its answer. again: from an answer to the next user
    turn. Control tokens that end a turn belong to `between` and `again`.
    """

    before: Tokens
    between: Tokens
    again: Tokens


@dataclass(frozen=True, slots=True)
class Wish:
    """A run of tokens the model shall write after `prompt`."""

    prompt: Tokens
    temperature: float
    max_tokens: int
    seed: int


@dataclass(frozen=True, slots=True)
class Dialogue:
    """tokens: [n]. answers: ranges [start, end) of the tokens the model answered with, ends of turns included."""

    tokens: Tokens
    answers: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How conversations are written. Temperatures are drawn per answer; 0 is the likeliest token each time."""

    temperatures: tuple[float, ...] = (0.0, 0.0, 0.8)
    user_temperature: float = 1.0
    user_tokens: int = 320
    answer_tokens: int = 256
    length: int = 1024  # of a conversation
    more_turns: float = 0.35  # chance of another turn after each answer


Writing = Generator[Wish, Sequence[int], Dialogue | None]


def write(
    frame: Frame,
    recipe: Recipe,
    openings: Sequence[Tokens],
    seed: int,
    given: Tokens = (),
    turns: Sequence[Tokens] = (),
    more: bool = True,
) -> Writing:
    """One conversation as a generator: yields wishes, is sent what was written; None when nothing came of it.

    openings: first tokens for a user turn, one of which is drawn. given: a conversation to start from, up to where the
    model answers; turns: what the user says next, then next. more: whether the model goes on for the user.
    """
    rng = random.Random(seed)
    tokens = list(given or frame.before)
    answers: list[tuple[int, int]] = []
    waiting = list(turns)
    while True:
        if answers and waiting:
            tokens += [*waiting.pop(0), *frame.between]
        elif answers or not given:
            tokens += rng.choice(openings)
            user = yield Wish(tuple(tokens), recipe.user_temperature, recipe.user_tokens, rng.getrandbits(63))
            if not user and not answers:
                return None
            tokens += [*user, *frame.between]
        room = recipe.length - len(tokens)
        if room < 16:
            break
        answer = yield Wish(
            tuple(tokens), rng.choice(recipe.temperatures), min(room, recipe.answer_tokens), rng.getrandbits(63)
        )
        if answer:
            start = len(tokens)
            tokens += answer
            finished = len(answer) < min(room, recipe.answer_tokens)
            answers.append((start, len(tokens) + finished))
            if finished:
                tokens.append(frame.again[0])
        if not answer or len(tokens) + 64 > recipe.length:
            break
        if not waiting and not (more and rng.random() <= recipe.more_turns):
            break
        tokens += frame.again[1:] if answers[-1][1] == len(tokens) and finished else frame.again
    return Dialogue(tuple(tokens[: recipe.length]), tuple(answers)) if answers else None


def text_seed(seed: int, index: int) -> int:
    """Of text `index` of a run: those of runs with neighbouring seeds are told apart."""
    return seed * 1_000_003 + index


def dialogues(
    frame: Frame, recipe: Recipe, openings: Sequence[Tokens], seed: int, prompts: Sequence[Tokens] = ()
) -> Callable[[int], Writing]:
    """The i-th of them depends on the seed, on i and on prompts[i] alone; without end, of its own after the prompts."""

    def make(index: int) -> Writing:
        given = prompts[index] if index < len(prompts) else ()
        return write(frame, recipe, openings, text_seed(seed, index), given)

    return make
