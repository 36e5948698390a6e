"""Deltas with a trace, as a server sends them: for pages that must bear more of them than a model here can make."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

JsonObject = dict[str, Any]

REASONS = ("best", "best", "best", "budget", "not worth it", "no guesses")
DRAFTERS = ("suffix", "recurrent", "suffix+recurrent", "medusa", "draft")
_TEXT = (
    "river stone light water morning house small bird window garden letter music road mountain paper winter quiet "
    "story number season table market summer island school engine kernel block draft token"
)
_WORDS = tuple(_TEXT.split())
_PARAGRAPH = 70  # words


def markdown_words(seed: int) -> Iterator[str]:
    """The tokens of a text without end: paragraphs, lists, code, emphasis, links, a table now and then."""
    source = random.Random(seed)
    for number in range(10**9):
        kind = number % 6
        if kind == 1:
            for _ in range(4):
                yield "\n-"
                yield from (f" {source.choice(_WORDS)}" for _ in range(9))
        elif kind == 3:
            yield from ("\n```", "python\n", "def", " walk", "(tree", "):\n")
            for _ in range(6):
                yield from ("    ", source.choice(_WORDS), " =", f" {source.randrange(999)}", "  # ")
                yield from (source.choice(_WORDS), "\n")
            yield "```"
        elif kind == 5:
            yield from ("\n|", " name", " |", " value", " |\n|", "---", "|", "---", "|")
            for _ in range(3):
                yield from ("\n|", f" {source.choice(_WORDS)}", " |", f" {source.randrange(99)}", " |")
        else:
            for _ in range(_PARAGRAPH):
                word = source.choice(_WORDS)
                yield f" **{word}**" if source.random() < 0.05 else f" {word}"
        yield "\n\n"


def traced_deltas(tokens: int, *, nodes: int = 16, seed: int = 0) -> Iterator[JsonObject]:
    """Deltas of one step each that bring `tokens` in all: `delta`, `x_seq`, and `x_spec` with a tree of `nodes`."""
    source = random.Random(seed)
    words = markdown_words(seed)
    pending = "?"
    sent = seq = 0
    while sent < tokens:
        accepted = min(source.choice((0, 0, 1, 1, 2, 3, 4)), tokens - sent - 1)
        brought = [next(words) for _ in range(accepted + 1)]
        parents = [-1, *range(accepted)]
        parents += [source.randrange(len(parents)) for _ in range(nodes - len(parents))]
        names = ["", *(source.choice(DRAFTERS) for _ in parents[1:])]
        texts = [pending, *brought[:-1], *(f" {source.choice(_WORDS)}" for _ in range(nodes - accepted - 1))]
        chances = [1.0, *(round(source.uniform(0.05, 0.95), 3) for _ in parents[1:])]
        sources = [*names[1 : accepted + 1], ""]
        counts = {"drafted": nodes - 1, "accepted": accepted, "emitted": len(brought)}
        step = {
            **counts,
            "ms": round(source.uniform(6, 14), 2),
            "nodes": nodes,
            "reason": source.choice(REASONS),
            "tokens": [{"text": text, "source": name} for text, name in zip(brought, sources, strict=True)],
            "tree": {
                "texts": texts,
                "parents": parents,
                "sources": names,
                "estimates": chances,
                "chances": chances,
                "path": list(range(accepted + 1)),
            },
        }
        seq += 1
        sent += len(brought)
        pending = brought[-1]
        spans = [[len(text), name] for text, name in zip(brought, sources, strict=True)]
        spec = {**counts, "source": "", "reason": step["reason"], "steps": [step], "spans": spans}
        yield {"delta": "".join(brought), "x_seq": seq, "x_spec": spec}
