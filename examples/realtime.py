"""A realtime session through the openai SDK: text that is sent while it is written, a reply, and one that is cancelled.

    pip install 'openai[realtime]'
    python examples/realtime.py

The SDK passes events it does not know in both directions, so Paceline's own need nothing but `send` and `event.type`.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any

from openai import AsyncOpenAI

TYPED = ("Name three things ", "a visitor of Lisbon ", "should not miss, ", "and say why.")


async def talk(given: argparse.Namespace) -> None:
    async with (
        AsyncOpenAI(base_url=given.url, api_key=given.key) as client,
        client.realtime.connect(model=given.model) as session,
    ):
        await session.send(
            {
                "type": "session.update",
                "session": {
                    "type": "realtime",
                    "output_modalities": ["text"],
                    "instructions": "You answer in short sentences.",
                    "max_output_tokens": given.max_tokens,
                    "temperature": 0.3,  # the default model is a small one: at 1 it talks nonsense
                },
            }
        )
        for words in TYPED:  # a page would send what a keystroke adds
            await session.send({"type": "input_text.append", "text": words})
        await wait_for(session, "x_input_text.prefilled")  # only to show that the prompt is computed meanwhile
        await session.send({"type": "input_text.commit"})
        await session.send({"type": "response.create"})
        await show(session)

        await session.conversation.item.create(
            item={
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Now tell me a long story about one of them."}],
            }
        )
        await session.response.create()
        await show(session, cancel_after=40)


async def wait_for(session: Any, kind: str) -> Any:
    """Reads up to the next event of a type. Raises RuntimeError when an error comes instead."""
    async for event in session:
        if event.type == "error":
            raise RuntimeError(event.error.message)
        if event.type == kind:
            return event
    raise RuntimeError("The server closed the connection.")


async def show(session: Any, cancel_after: int | None = None) -> None:
    """Prints a reply as it arrives, to its end, which a cancelled one has too.

    cancel_after: so many characters are enough.
    """
    length = 0
    async for event in session:
        match event.type:
            case "response.output_text.delta":
                print(event.delta, end="", flush=True)
                before, length = length, length + len(event.delta)
                if cancel_after is not None and before < cancel_after <= length:
                    await session.response.cancel()
            case "response.done":
                usage = event.response.usage
                print(
                    f"\n[{event.response.status}] {usage.input_tokens} tokens read, "
                    f"{usage.input_token_details.cached_tokens} of them known, {usage.output_tokens} written"
                )
                return
            case "error" if event.error.code != "response_cancel_not_active":  # it may just have ended by itself
                raise RuntimeError(event.error.message)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Two turns of a realtime session.")
    parser.add_argument("--url", default="http://127.0.0.1:8377/v1")
    parser.add_argument("--key", default="unused")
    parser.add_argument("--model", default="default")
    parser.add_argument("--max-tokens", type=int, default=120)
    asyncio.run(talk(parser.parse_args(arguments)))


if __name__ == "__main__":
    main()
