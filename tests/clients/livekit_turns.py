"""Turns of LiveKit's language models: python livekit_turns.py SERVER PROTOCOL; prints one JSON object."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from livekit.agents import ChatContext, llm
from livekit.agents.utils import http_context
from livekit_agent import PROTOCOLS, Weather

SHORT = {"seed": 7, "logit_bias": {"2": 2.5}}  # the model ends by itself
CALL = {"seed": 7, "logit_bias": {"5": 8, "96": 8}}  # `"` and `}` are likely: the arguments are short
ENDLESS = {"logit_bias": {"2": -100}}


async def reply(model: llm.LLM, context: ChatContext, **asked: Any) -> dict[str, Any]:
    """One reply to its end; the context gets it."""
    said, calls, usage = [], [], None
    async with model.chat(chat_ctx=context, **asked) as stream:
        async for chunk in stream:
            usage = chunk.usage or usage
            if chunk.delta is not None:
                said += [chunk.delta.content] if chunk.delta.content else []
                calls += [
                    {"name": call.name, "arguments": json.loads(call.arguments)} for call in chunk.delta.tool_calls
                ]
    if said:
        context.add_message(role="assistant", content="".join(said))
    return {"said": said, "calls": calls, "read": usage.prompt_tokens, "known": usage.prompt_cached_tokens}


async def turns(server: str, protocol: str) -> dict[str, Any]:
    async with http_context.open(), PROTOCOLS[protocol](server, "unused", "tiny", 400) as model:
        context = ChatContext()
        context.add_message(role="user", content="hello")
        first = await reply(model, context, extra_kwargs=SHORT)
        context.add_message(role="user", content="and then?")
        second = await reply(model, context, extra_kwargs=SHORT)

        asked = ChatContext()
        asked.add_message(role="user", content="What is the weather like in Oslo?")
        call = await reply(
            model,
            asked,
            tools=Weather().tools,
            tool_choice="required",
            parallel_tool_calls=False,
            extra_kwargs=CALL,
        )

    async with http_context.open(), PROTOCOLS[protocol](server, "unused", "tiny", 1_000_000) as model:
        stream = model.chat(chat_ctx=asked, extra_kwargs=ENDLESS)
        cut = [(await anext(stream)).delta.content for _ in range(3)]
        await stream.aclose()
        context.add_message(role="user", content="Once more.")
        again = await reply(model, context, extra_kwargs=SHORT)
    return {"first": first, "second": second, "call": call, "cut": cut, "again": again}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(asyncio.wait_for(turns(*sys.argv[1:]), 60))))
