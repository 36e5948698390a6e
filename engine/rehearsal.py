"""Replies that nobody reads, before anybody waits for one.

What only whole steps launch, choosing tokens, walking trees and drafting, a backend may have to compile first, and each
size of a drafter's pass to capture: up to seconds, which would hold up the first readers and be taken for the time that
drafting takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .engine import Engine
from .request import Request, SamplingParams

_WORD = (1, 2, 3, 4, 5, 6)  # the prompt says it again and again: there is something to guess
_WORDS = 8  # more than what comes between two passes of a drafter, which has to catch up then
_REPLY = 12
_SAMPLINGS = (
    SamplingParams(max_tokens=_REPLY, seed=1, temperature=0.0),
    SamplingParams(max_tokens=_REPLY, seed=1),
    SamplingParams(max_tokens=_REPLY, seed=1, top_p=0.9),
    SamplingParams(max_tokens=_REPLY, seed=1, temperature=0.0, repetition_penalty=1.1),
)


def rehearse(engine: Engine, streams: Sequence[int], restart: Callable[[], None]) -> None:
    """Run replies one by one, drawn in every way, and then so many beside each other.

    engine: one that is thrown away, over a cache that is not in use. restart: what drafters measured is forgotten,
    after every step, so that they are always asked again, and nothing is left at the end.
    """
    prompt = _WORD * _WORDS
    if engine.context_length < len(prompt) + _REPLY or engine.vocab_size <= max(_WORD):
        return
    alone = [[Request(id=f"{number}", prompt=prompt, sampling=each)] for number, each in enumerate(_SAMPLINGS)]
    beside = [
        [Request(id=f"{i} of {count}", prompt=prompt, sampling=_SAMPLINGS[0]) for i in range(count)]
        for count in streams
    ]
    for requests in (*alone, *beside):
        for request in requests:
            engine.enqueue(request)
        while engine.has_work:
            engine.step(lambda deltas: None)
            restart()
