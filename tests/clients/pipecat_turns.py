"""Turns of Pipecat's language-model services: python pipecat_turns.py SERVER PROTOCOL; prints one JSON object."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from typing import Any

from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.frames.frames import FunctionCallResultProperties
from pipecat.services.llm_service import FunctionCallParams
from pipecat_service import PROTOCOLS, TOOL, Conversation

SHORT = {"seed": 7, "logit_bias": {"2": 2.5}}  # the model ends by itself
CALL = {"seed": 7, "tool_choice": "required", "parallel_tool_calls": False, "logit_bias": {"5": 8, "96": 8}}  # `"`, `}`
ENDLESS = {"logit_bias": {"2": -100}}


async def turns(server: str, protocol: str) -> dict[str, Any]:
    make = PROTOCOLS[protocol]
    async with Conversation(make(server, "unused", "tiny", 400, **SHORT), []) as conversation:
        said = await conversation.ask("hello")
        after = await conversation.ask("and then?")

    called: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def note(params: FunctionCallParams) -> None:
        called.set_result({"name": params.function_name, "arguments": dict(params.arguments)})
        await params.result_callback("rain", properties=FunctionCallResultProperties(run_llm=False))

    tool = FunctionSchema(TOOL.name, TOOL.description, TOOL.properties, TOOL.required, handler=note)
    async with Conversation(make(server, "unused", "tiny", 400, **CALL), [tool]) as conversation:
        turn = asyncio.create_task(conversation.ask("What is the weather like in Oslo?"))
        call = await asyncio.wait_for(called, 30)
        turn.cancel()

    service = make(server, "unused", "tiny", 1_000_000, **ENDLESS)
    async with Conversation(service, []) as conversation:
        turn = asyncio.create_task(conversation.ask("Go on and on."))
        while len(conversation.speaker.said) < 5:
            await asyncio.sleep(0.01)
        await conversation.interrupt()
        turn.cancel()
        again = asyncio.create_task(conversation.ask("Once more."))
        while not conversation.speaker.said:
            await asyncio.sleep(0.01)
        await conversation.interrupt()
        again.cancel()
    return {"said": said, "after": after, "call": call, "again": conversation.speaker.said}


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        found = asyncio.run(asyncio.wait_for(turns(*sys.argv[1:]), 60))
    print(json.dumps(found))
