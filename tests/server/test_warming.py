"""Prompts computed ahead: what is sure to come, what is found again, and that nothing of it gets in anybody's way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from service import is_idle, running_service
from templates import TEMPLATES
from vocabularies import byte_level_tokenizer

from paceline.kernels.paging import BLOCK_SIZE
from paceline.server.caller import ANYONE, Caller
from paceline.server.chat_template import ChatTemplate
from paceline.server.fields import JsonObject
from paceline.server.generation import Generation
from paceline.server.limits import Allowance, Holder
from paceline.server.parameters import Parameters
from paceline.server.service import Service
from paceline.server.session_outputs import Warm
from paceline.server.warming import Warming, continuations

HISTORY = [
    {"role": "system", "content": "Answer in a few words."},
    {"role": "user", "content": "What is a paceline?"},
    {"role": "assistant", "content": "Riders who draft."},
]
TEXT = "And how fast can such a group go on a flat road, when nobody is tired yet?"


def warm(messages: Sequence[JsonObject] = HISTORY, pending: str | None = None) -> Warm:
    return Warm(messages=list(messages), pending=pending, parameters=Parameters())


async def until(condition: Any, patience_s: float = 20.0) -> None:
    async with asyncio.timeout(patience_s):
        while not condition():
            await asyncio.sleep(0.002)


class Ahead:
    """A Warming, and what it reported."""

    def __init__(self, service: Service, caller: Caller = ANYONE) -> None:
        self.reports: list[tuple[Warm, int, int, int]] = []
        self.service = service
        self.warming = Warming(service, caller, "owner", lambda *report: self.reports.append(report))

    async def ready(self, wanted: Warm) -> tuple[int, int]:
        """Asks for it and waits; its tokens, and how many of them are sure to come."""
        self.warming.want(wanted)
        await until(lambda: self.reports and self.reports[-1][0] is wanted)
        _, tokens, stable, cached = self.reports[-1]
        assert cached == stable // BLOCK_SIZE * BLOCK_SIZE
        return tokens, stable

    async def recomputed(self, messages: Sequence[JsonObject]) -> int:
        """Tokens of the prompt that were not found."""
        parameters = Parameters(max_tokens=1, seed=1)
        generation = Generation(
            self.service,
            id=f"g{time.perf_counter_ns()}",
            prepared=await self.service.prepare(messages, parameters),
            parameters=parameters,
            protocol="test",
            started=time.perf_counter(),
        )
        async with generation:
            while await generation.next() is not None:
                pass
        usage = generation.committer.usage
        return usage.prompt_tokens - usage.cached_tokens


@asynccontextmanager
async def warming_of(service: Service) -> AsyncIterator[Ahead]:
    ahead = Ahead(service)
    try:
        yield ahead
    finally:
        await ahead.warming.close()
    await until(lambda: is_idle(service))


def said(text: str, messages: Sequence[JsonObject] = HISTORY) -> list[JsonObject]:
    return [*messages, {"role": "user", "content": text}]


# What is sure to come


def stable(template: ChatTemplate, wanted: Warm) -> tuple[list[int], int]:
    prompts = [template.encode(messages) for messages in continuations(wanted)]
    same = 0
    while all(len(prompt) > same and prompt[same] == prompts[0][same] for prompt in prompts):
        same += 1
    return prompts[0], same


@pytest.mark.parametrize("name", ["smollm2", "llama3", "qwen3", "mistral"])
@pytest.mark.parametrize(
    "text", [TEXT, "日本語のテキスト、つづく。 もっと", "x = [1, 22,  333]\n\ty", "naïve café 😀😀 go"]
)
def test_what_is_stable_stays_however_the_text_goes_on(name: str, text: str) -> None:
    template = ChatTemplate(TEMPLATES[name], "<|endoftext|>", "<|im_end|>", byte_level_tokenizer())
    for end in range(0, len(text), 2):
        now, same = stable(template, warm(pending=text[:end]))
        later = template.encode(said(text))
        assert later[:same] == now[:same]
    assert len(now) - same < 40  # the last word and what closes the turn


def test_the_conversation_itself_is_the_first_continuation() -> None:
    assert continuations(warm(pending="hi"))[0] == said("hi")
    question = said("Well?")
    assert continuations(warm(question))[0] == question
    assert all(len(messages) == len(HISTORY) + 1 for messages in continuations(warm()))


# What is computed


async def test_a_growing_text_is_found_when_it_is_committed(service: Service) -> None:
    async with warming_of(service) as ahead:
        for end in (20, 45, len(TEXT) - 4):
            tokens, sure = await ahead.ready(warm(pending=TEXT[:end]))
            assert BLOCK_SIZE <= sure <= tokens
        rest = tokens - sure + len(TEXT) - end  # a token has at least one character
        assert await ahead.recomputed(said(TEXT)) <= BLOCK_SIZE + rest


async def test_a_revised_text_keeps_what_it_has_in_common(service: Service) -> None:
    async with warming_of(service) as ahead:
        await ahead.ready(warm(pending=TEXT))
        _, sure = await ahead.ready(warm(pending=TEXT[:40] + "in a crosswind?"))
        assert sure >= BLOCK_SIZE
        tokens, sure = await ahead.ready(warm(pending=TEXT))
        assert await ahead.recomputed(said(TEXT)) <= BLOCK_SIZE + tokens - sure


async def test_few_new_tokens_are_no_work_for_the_engine(service: Service) -> None:
    async with warming_of(service) as ahead:
        _, sure = await ahead.ready(warm(pending=TEXT))
        await until(lambda: is_idle(service))
        before = service.loop.stats().prompt_tokens
        reported = await ahead.ready(warm(pending=TEXT[:-1]))
        await until(lambda: is_idle(service))
        assert service.loop.stats().prompt_tokens == before
        assert reported[1] <= sure


async def test_the_newest_text_wins(service: Service) -> None:
    async with warming_of(service) as ahead:
        for end in range(1, len(TEXT)):
            ahead.warming.want(warm(pending=TEXT[:end]))
        await ahead.ready(warm(pending=TEXT))
        assert len(ahead.reports) <= 2  # hardly any of the others was worked on


async def test_after_a_cut_only_what_is_new_is_computed(service: Service) -> None:
    """The conversation after a reply was cut to what was heard."""
    cut = [*HISTORY[:2], {"role": "assistant", "content": "Riders who"}]
    async with warming_of(service) as ahead:
        await ahead.ready(warm())
        _, sure = await ahead.ready(warm(cut))
        prompt = await service.prompt(said("Go on.", cut))
        assert await ahead.recomputed(said("Go on.", cut)) <= BLOCK_SIZE + len(prompt) - sure


async def test_what_cannot_be_rendered_or_is_too_long_warms_nothing(service: Service) -> None:
    async with warming_of(service) as ahead:
        ahead.warming.want(warm(pending="z" * 5000))
        await asyncio.sleep(0.01)
        ahead.warming.want(warm([{"role": "assistant", "content": {"not": "text"}}], pending=None))
        await asyncio.sleep(0.01)
        await ahead.ready(warm(pending=TEXT))
        assert len(ahead.reports) == 1


async def test_a_reply_that_begins_ends_the_work_ahead(service: Service) -> None:
    async with warming_of(service) as ahead:
        ahead.warming.want(warm(pending=TEXT))
        ahead.warming.rest()
        await asyncio.sleep(0.05)
        assert not ahead.reports
        await ahead.ready(warm(pending=TEXT))


async def test_blocks_are_kept_until_the_end(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        async with warming_of(service) as ahead:
            _, sure = await ahead.ready(warm(pending=TEXT))
            await until(lambda: service.loop.stats().blocks_pinned == sure // BLOCK_SIZE)
        await until(lambda: service.loop.stats().blocks_pinned == 0)


async def test_nothing_is_computed_while_others_wait(tmp_path: Path) -> None:
    with running_service(tmp_path, max_batch=1) as service:
        ahead = Ahead(service)
        parameters = Parameters(max_tokens=200, seed=1)
        prepared = await service.prepare(HISTORY[:2], parameters)
        running = [
            Generation(service, id=name, prepared=prepared, parameters=parameters, protocol="test", started=0.0)
            for name in "ab"
        ]
        await running[0].next()
        ahead.warming.want(warm(pending=TEXT))
        await asyncio.sleep(0.05)
        assert not ahead.reports
        for generation in running:
            generation.abort()
        await ahead.warming.close()
        await until(lambda: is_idle(service))


async def test_an_end_that_is_cancelled_keeps_nothing(tmp_path: Path) -> None:
    """As when a server stops at once."""
    with running_service(tmp_path) as service:
        ahead = Ahead(service)
        await ahead.ready(warm())
        await until(lambda: service.loop.stats().blocks_pinned > 0)
        ahead.warming.want(warm(pending=TEXT))
        ending = asyncio.create_task(ahead.warming.close())
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        await until(lambda: service.loop.stats().blocks_pinned == 0)


# Who pays


async def test_who_asks_pays_for_it_and_gets_none_of_it_with_nothing_left(service: Service) -> None:
    anna = Holder("key_1", "anna", Allowance(tokens_per_minute=1000), clock=lambda: 0.0)

    def left() -> int:
        return int(anna.headers()["x-ratelimit-remaining-tokens"])

    ahead = Ahead(service, anna)
    try:
        _, sure = await ahead.ready(warm(said("one two three four five six seven eight")))
        computed = 1000 - left()
        assert 0 < computed <= sure
        anna.spend(left() + 1)
        ahead.warming.want(warm(said("another thing that is said, at some length too")))
        await asyncio.sleep(0.3)
        assert len(ahead.reports) == 1
        assert (anna.running, service.loop.stats().running) == (0, 0)
    finally:
        await ahead.warming.close()


async def test_work_ahead_that_is_given_up_is_paid_for_all_the_same(service: Service) -> None:
    class Leaving(Holder):
        def spend(self, tokens: int) -> None:
            super().spend(tokens)
            ahead.warming.rest()

    anna = Leaving("key_1", "anna", Allowance(tokens_per_minute=1000), clock=lambda: 0.0)
    ahead = Ahead(service, anna)
    try:
        ahead.warming.want(warm(said("what nobody has said before, " * 4)))
        await until(lambda: int(anna.headers()["x-ratelimit-remaining-tokens"]) <= 1000 - 4 * BLOCK_SIZE)
        await until(lambda: is_idle(service))
        assert ahead.reports == []
        assert int(anna.headers()["x-ratelimit-remaining-tokens"]) <= 1000 - 4 * BLOCK_SIZE
    finally:
        await ahead.warming.close()
