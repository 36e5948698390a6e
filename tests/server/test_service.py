from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from service import MODEL_ID, build_service, running_service
from tiny_models import make_folder
from vocabularies import whole_text

from paceline.engine.config import EngineConfig
from paceline.engine.errors import ModelError, RequestError
from paceline.server.api_errors import ApiError
from paceline.server.parameters import Parameters
from paceline.server.prepared import plain_reader
from paceline.server.reply_format import ReplyFormat
from paceline.server.reply_parts import CallBegin
from paceline.server.service import Service
from paceline.server.tool_use import Tool, ToolUse


def test_what_the_protocols_see(service: Service) -> None:
    assert service.model_id == MODEL_ID
    assert service.context_length == 256
    assert {"auto", "none", "suffix"} <= set(service.speculators)
    assert service.stop_ids == set(service.tokenizer.eos_ids)
    service.require_model(MODEL_ID)
    service.require_model("default")
    with pytest.raises(ApiError, match="'other' is not served here; use 'tiny' or 'default'") as caught:
        service.require_model("other")
    assert (caught.value.status, caught.value.code) == (404, "model_not_found")


def test_health_follows_the_engine(tmp_path: Path) -> None:
    service = build_service(tmp_path)
    assert not service.healthy
    service.start()
    assert service.healthy
    service.stop()
    assert not service.healthy


def test_a_dead_engine_thread_is_not_healthy(tmp_path: Path) -> None:
    service = build_service(tmp_path)
    service.start()
    service.loop.stop()  # as if the thread had ended by itself
    assert not service.healthy


def test_a_missing_model_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        Service.build(tmp_path / "nothing", tmp_path, EngineConfig(), "x")
    assert "\n" not in str(caught.value)


async def test_prompts_ahead_leave_out_what_no_reply_could_have(service: Service) -> None:
    hi = [{"role": "user", "content": "hi"}]
    long = [{"role": "user", "content": "z" * 5000}]
    refused = [{"role": "assistant", "content": {"not": "text"}}]
    expected = await service.prompt(hi)
    assert await service.prompts_ahead([long, hi, refused], Parameters()) == [expected]
    assert await service.prompts_ahead([long, refused], Parameters()) == []


@pytest.mark.parametrize("strict", [True, None])
async def test_a_schema_that_cannot_be_followed_is_left_to_the_model_where_nothing_is_said(
    tmp_path: Path, strict: bool | None
) -> None:
    broken = Tool(name="f", schema={"type": "object", "properties": {"a": {"type": "sock"}}}, strict=strict)
    whole = Tool(name="f", schema={"type": "object"}, strict=strict)
    talk = [{"role": "user", "content": "hi"}]

    def asking(tool: Tool) -> Parameters:
        return Parameters(tools=ToolUse(tools=(tool,), strict_unless_said=True))

    with running_service(tmp_path, context_length=2048) as service:
        assert (await service.prepare(talk, asking(whole))).grammar is not None
        if strict is None:
            assert (await service.prepare(talk, asking(broken))).grammar is None
            return
        with pytest.raises(RequestError) as caught:
            await service.prepare(talk, asking(broken))
        assert caught.value.code == "invalid_grammar"


async def test_prompts_end_with_the_opening_of_the_reply(service: Service) -> None:
    ids = await service.prompt([{"role": "user", "content": "hi"}])
    assert whole_text(service.tokenizer, ids) == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


async def test_long_prompts_give_the_same_tokens_off_the_loop(service: Service) -> None:
    from paceline.server import service as module

    text = "a" * (module._INLINE_CHARS + 1)
    with pytest.raises(RequestError) as caught:
        await service.prompt([{"role": "user", "content": text}])
    assert caught.value.code == "context_length_exceeded"
    assert "maximum context length is 256 tokens" in str(caught.value)
    assert str(len(service.template.encode([{"role": "user", "content": text}]))) in str(caught.value)


async def test_a_prompt_must_leave_room_for_one_token(service: Service) -> None:
    frame = len(await service.prompt([{"role": "user", "content": ""}]))
    most = service.context_length - 1 - frame
    assert len(await service.prompt([{"role": "user", "content": "z" * most}])) == service.context_length - 1
    with pytest.raises(RequestError, match="maximum context length"):
        await service.prompt([{"role": "user", "content": "z" * (most + 1)}])


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, "This model's maximum context length is 1024 tokens, and"),
        ({"context_length": 96}, "The maximum context length is 96 tokens, set by this server's --context-length, and"),
        ({"kv_memory": 2**16}, r"The maximum context length is \d+ tokens, set by this server's --kv-memory, and"),
    ],
)
async def test_the_option_that_limits_the_context_is_named(tmp_path: Path, options: dict[str, int], limit: str) -> None:
    model = make_folder(tmp_path / "model", "smollm2", max_position_embeddings=1024)
    config = EngineConfig(device="cpu", threads=1, **options)  # type: ignore[arg-type]
    service = Service.build(model, tmp_path, config, MODEL_ID)
    with pytest.raises(RequestError, match=f"^{limit} the messages alone are "):
        await service.prompt([{"role": "user", "content": "z" * 1500}])
    assert (service.short_context is None) == (options == {})


async def test_what_cannot_fit_is_refused_before_it_is_tokenised(service: Service) -> None:
    fits_perhaps, cannot = service.max_chars // 2, service.max_chars + 1
    for size, word in ((fits_perhaps, "tokens; shorten"), (cannot, "characters, more than")):
        with pytest.raises(RequestError, match=word) as caught:
            await service.prompt([{"role": "user", "content": "q" * size}])
        assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "messages")
        assert "maximum context length" in str(caught.value)


async def test_long_prompts_wait_for_each_other_and_hold_up_nothing_else(tmp_path: Path) -> None:
    from paceline.server import service as module

    with running_service(tmp_path, context_length=65_536) as service:
        long = [{"role": "user", "content": "the cat, the dog; " * 10_000}]
        short = [{"role": "user", "content": "hi"}]
        assert module._LONG_CHARS < len(long[0]["content"]) < service.max_chars
        others = {*threading.enumerate()}  # other services of this process among them
        waiting = [asyncio.create_task(service.prompt(long)) for _ in range(3)]
        expected = await service.prompt(short)
        turns = 0
        while not all(task.done() for task in waiting):
            assert sum("long-prompt" in thread.name for thread in {*threading.enumerate()} - others) <= 1
            assert await service.prompt(short) == expected
            turns += 1
            await asyncio.sleep(0)
        assert turns >= 2
        assert all(isinstance(error, RequestError) for error in await asyncio.gather(*waiting, return_exceptions=True))


async def test_tools_are_part_of_the_prompt_and_of_how_the_reply_is_read(tmp_path: Path) -> None:
    service = build_service(tmp_path, context_length=1024)
    asked = [{"role": "user", "content": "hi"}]
    tools = ToolUse(tools=(Tool(name="f"),))
    plain = await service.prepare(asked, Parameters())
    assert (plain.reader, plain.prompt) == (plain_reader, await service.prompt(asked))
    prepared = await service.prepare(asked, Parameters(tools=tools))
    assert '"name": "f"' in whole_text(service.tokenizer, prepared.prompt)
    parts = prepared.reader(1).push('<tool_call>{"name": "f"}</tool_call>')
    assert [part.name for part in parts if isinstance(part, CallBegin)] == ["f"]
    assert await service.prepare(asked, Parameters(tools=replace(tools, choice="none"))) == plain
    many = replace(tools, tools=tuple(Tool(name=f"f{i}", description="d" * 100) for i in range(20)))
    with pytest.raises(RequestError, match=r"maximum context length .* the messages and tools alone are"):
        await service.prepare(asked, Parameters(tools=many))


async def test_a_reply_that_must_have_a_form_is_prepared_with_its_grammar(service: Service) -> None:
    messages = [{"role": "user", "content": "hi"}]
    free = await service.prepare(messages, Parameters())
    assert free.grammar is None
    asked = Parameters(format=ReplyFormat("regex", "[0-9]+x"))
    formed = await service.prepare(messages, asked)
    assert formed.prompt == free.prompt
    assert formed.grammar is not None
    assert formed.grammar.matcher().fits(service.tokenizer.encode("12x")) == 3
    assert (await service.prepare(messages, asked)).grammar is formed.grammar
    with pytest.raises(RequestError) as caught:
        await service.prepare(messages, Parameters(format=ReplyFormat("regex", "(", param="text.format.regex")))
    assert (caught.value.param, caught.value.code) == ("text.format.regex", "invalid_grammar")


async def test_a_grammar_that_takes_long_holds_up_nothing_else(service: Service) -> None:
    slow = "start: " + "|".join(['"a"'] * 4_000)
    making = asyncio.create_task(service.grammar(lambda: slow, "format"))
    turns = 0
    while not making.done():
        await service.prompt([{"role": "user", "content": "hi"}])
        turns += 1
        await asyncio.sleep(0)
    assert turns > 5
    assert (await making).matcher().fits(service.tokenizer.encode("a")) == 1


async def test_a_form_that_is_known_waits_for_no_new_one(service: Service) -> None:
    first = await service.grammar(lambda: 'start: "known"', "x")
    slow = threading.Event()
    service._new_grammars.submit(slow.wait)
    try:
        assert await asyncio.wait_for(service.grammar(lambda: 'start: "known"', "x"), 5) is first
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(service.grammar(lambda: 'start: "new"', "x"), 0.05)
    finally:
        slow.set()
