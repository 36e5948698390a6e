from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from service import is_idle, running_service

from paceline.engine.errors import RequestError
from paceline.server.fields import Fields
from paceline.server.generation import Generation, Step
from paceline.server.limits import Allowance, Holder
from paceline.server.parameters import Parameters, derive_seed, read_parameters
from paceline.server.prepared import Prepared
from paceline.server.reply_parts import CallArguments, CallBegin, Part, joined
from paceline.server.service import Service

SCHEMA = {"type": "object", "properties": {"kind": {"enum": ["sun", "rain"]}}, "required": ["kind"]}
SCHEMA |= {"additionalProperties": False}
PROMPT = tuple(range(10, 40))


async def finished(generation: Generation) -> list[Step]:
    steps = []
    async with generation:
        while (step := await generation.next()) is not None:
            steps.append(step)
    return steps


def start(service: Service, n: int = 1, name: str = "g", max_tokens: int = 12, **parameters: Any) -> Generation:
    asked = read_parameters(Fields(parameters), service.limits, Parameters(max_tokens=max_tokens, seed=9))
    return Generation(
        service, id=name, prepared=Prepared(PROMPT), parameters=asked, protocol="test", started=time.perf_counter(), n=n
    )


async def test_each_choice_is_the_reply_of_its_own_seed(service: Service) -> None:
    together = start(service, n=3)
    assert [request.sampling.seed for request in together.requests] == [derive_seed(9, i) for i in range(3)]
    await finished(together)
    assert len({committer.text for committer in together.committers}) == 3
    for i, committer in enumerate(together.committers):
        alone = start(service, seed=derive_seed(9, i))
        await finished(alone)
        assert alone.committer.text == committer.text


async def test_usage_counts_the_prompt_once(service: Service) -> None:
    generation = start(service, n=3)
    steps = await finished(generation)
    usage = generation.usage()
    assert usage["prompt_tokens"] == len(PROMPT)
    assert usage["completion_tokens"] == sum(len(step.piece.tokens) for step in steps)
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


async def test_without_a_seed_a_random_one_is_told(service: Service) -> None:
    asked = Parameters(max_tokens=12)
    first, second = (
        Generation(service, id=name, prepared=Prepared(PROMPT), parameters=asked, protocol="test", started=0.0)
        for name in "gh"
    )
    await asyncio.gather(finished(first), finished(second))
    assert first.seed != second.seed
    again = start(service, seed=first.seed)
    await finished(again)
    assert again.committer.text == first.committer.text


async def test_a_limit_over_the_window_is_the_window(service: Service) -> None:
    generation = start(service, max_tokens=10**9, temperature=0.0)
    steps = await finished(generation)
    assert steps[-1].piece.finish in ("length", "stop")
    assert len(PROMPT) + generation.committer.usage.completion_tokens <= service.context_length
    assert generation.requests[0].sampling.max_tokens == service.context_length - len(PROMPT)


async def test_a_stop_string_ends_the_engine_too(service: Service) -> None:
    free = start(service, max_tokens=60)
    await finished(free)
    text = free.committer.text
    stop = text[10:12]
    cut = start(service, max_tokens=60, stop=stop)
    steps = await finished(cut)
    assert steps[-1].piece.finish == "stop"
    assert cut.committer.text == text[: text.index(stop)]
    async with asyncio.timeout(20):
        while not is_idle(service):
            await asyncio.sleep(0.002)


async def test_figures_of_one_choice_are_its_committers(service: Service) -> None:
    generation = start(service, max_tokens=60, temperature=0.0)
    await finished(generation)
    metrics = generation.metrics()
    assert metrics["speculative_decoding"] == generation.committer.figures.body()
    assert metrics["time_to_first_token_ms"] > 0


async def test_figures_of_several_choices_add_up(service: Service) -> None:
    generation = start(service, n=3, max_tokens=80, temperature=0.2)
    await finished(generation)
    figures = generation.metrics()["speculative_decoding"]
    each = [committer.figures.body() for committer in generation.committers]
    assert figures["num_draft_tokens"] == sum(one["num_draft_tokens"] for one in each)
    assert sum(figures["acceptance_histogram"]) == figures["num_spec_steps"]
    assert figures["num_accepted_draft_tokens"] == sum(i * c for i, c in enumerate(figures["acceptance_histogram"]))
    assert len(figures["acceptance_histogram"]) == figures["num_spec_tokens"] + 1


async def test_prefill_only_says_nothing_and_counts_as_that(service: Service) -> None:
    def run(name: str) -> Generation:
        prepared, asked = Prepared((*range(50, 90), len(name))), Parameters(seed=1)
        return Generation(
            service, id=name, prepared=prepared, parameters=asked, protocol="warm", started=0.0, prefill_only=True
        )

    for cached, name in ((0, "w"), (32, "again")):
        generation = run(name)
        (step,) = await finished(generation)
        assert (step.piece.text, step.piece.finish, step.piece.cut) == ("", "prefilled", None)
        usage = generation.usage()
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (41, 0)
        assert usage["prompt_tokens_details"]["cached_tokens"] == cached
    labels = {"protocol": "warm", "outcome": "prefilled"}
    assert service.metrics.registry.get_sample_value("paceline_replies_total", labels) == 2


async def test_outcomes_are_counted_once(service: Service) -> None:
    def count(outcome: str) -> float:
        return (
            service.metrics.registry.get_sample_value(
                "paceline_replies_total", {"protocol": "test", "outcome": outcome}
            )
            or 0.0
        )

    before = count("length"), count("cancelled"), count("refused")
    await finished(start(service, temperature=0.0))
    cancelled = start(service, n=2, max_tokens=400)
    await cancelled.next()
    cancelled.abort()
    cancelled.abort()
    long = Parameters(max_tokens=5, seed=1)
    with pytest.raises(RequestError):
        Generation(service, id="x", prepared=Prepared((10**6,)), parameters=long, protocol="test", started=0.0)
    assert (count("length"), count("cancelled"), count("refused")) == (before[0] + 1, before[1] + 2, before[2] + 1)


async def test_a_caller_is_charged_once_however_a_reply_ends(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    anna = Holder("key_1", "anna", Allowance(concurrency=2, tokens_per_minute=1000), clock=lambda: 0.0)

    def begin(prompt: tuple[int, ...], n: int = 1, max_tokens: int = 6) -> Generation:
        asked = Parameters(max_tokens=max_tokens, seed=1)
        return Generation(
            service, id="x", prepared=Prepared(prompt), parameters=asked, protocol="test", started=0.0, n=n, caller=anna
        )

    def left() -> int:
        return int(anna.headers()["x-ratelimit-remaining-tokens"])

    caplog.set_level("INFO", "paceline.server")
    with pytest.raises(RequestError):
        begin((10**6,))  # the engine knows no such token
    assert (anna.running, left()) == (0, 1000)
    prompt = tuple(range(40, 80))
    generation = begin(prompt, n=3)
    assert (anna.running, left()) == (1, 1000 - len(prompt))
    await finished(generation)
    first = generation.committers[0].usage
    written = generation.usage()["completion_tokens"]
    assert (anna.running, left()) == (0, 1000 - len(prompt) + first.cached_tokens - written)
    before = left()
    generation = begin(tuple(range(80, 90)), max_tokens=200)
    generation.abort()
    generation.abort()
    assert (anna.running, left()) == (0, before - 10)
    lines = [record.fields for record in caplog.records if record.message == "reply"]  # type: ignore[attr-defined]
    assert [line["finish"] for line in lines] == ["refused", "length", "abort"]
    assert {line["name"] for line in lines} == {"anna"}
    assert (lines[1]["prompt_tokens"], lines[1]["output_tokens"]) == (len(prompt), written)
    assert "ttft_ms" not in lines[2]


@pytest.fixture(scope="module")
def roomy_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """With room for tools that are described in the prompt."""
    with running_service(tmp_path_factory.mktemp("roomy"), context_length=1024) as service:
        yield service


async def called(service: Service, name: str, limit: int = 300, **fields: Any) -> tuple[list[Part], str | None, int]:
    """The parts of a reply to a request with two tools, its finish, and how many tokens it has."""
    tools = [{"type": "function", "name": f, "parameters": SCHEMA, "strict": True} for f in ("first", "second")]
    asked = {"tools": tools, "seed": 9, "temperature": 2.0, **fields}
    parameters = read_parameters(Fields(asked), service.limits, Parameters(max_tokens=limit))
    prepared = await service.prepare([{"role": "user", "content": "hi"}], parameters)
    generation = Generation(
        service, id=name, prepared=prepared, parameters=parameters, protocol="test", started=time.perf_counter()
    )
    steps = await finished(generation)
    parts = joined(part for step in steps for part in step.piece.parts)
    return parts, steps[-1].piece.finish, generation.usage()["completion_tokens"]


@pytest.mark.parametrize(
    ("choice", "names"),
    [("required", {"first", "second"}), ({"type": "function", "name": "second"}, {"second"})],
)
async def test_a_model_that_knows_nothing_makes_the_call_it_must(
    roomy_service: Service, choice: Any, names: set[str]
) -> None:
    asked = {"tool_choice": choice, "parallel_tool_calls": False}
    parts, finish, tokens = await called(roomy_service, "a", **asked)
    begin, arguments = parts
    assert isinstance(begin, CallBegin)
    assert begin.name in names
    assert isinstance(arguments, CallArguments)
    assert set(json.loads(arguments.text)) == {"kind"}
    assert finish == "tool_calls"
    plain = await called(roomy_service, "b", **asked, speculation={"mode": "none"})
    assert plain == (parts, finish, tokens)


async def test_a_call_that_the_length_cuts_off_ends_with_length(roomy_service: Service) -> None:
    asked = {"tool_choice": "required", "parallel_tool_calls": False}
    _, _, tokens = await called(roomy_service, "a", **asked)
    _, finish, kept = await called(roomy_service, "b", tokens - 20, **asked)
    assert (finish, kept) == ("length", tokens - 20)
