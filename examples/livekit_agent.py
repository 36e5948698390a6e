"""LiveKit Agents with Paceline as its language model: over chat completions, or over the Responses socket.

    pip install livekit-agents livekit-plugins-openai
    python examples/livekit_agent.py                        # chat completions
    python examples/livekit_agent.py --protocol responses   # one socket for the conversation

Give the model to the `AgentSession` of a voice agent as its `llm`. Here the session has no room: a question, a tool,
the answer.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import Literal

from livekit.agents import Agent, AgentSession, function_tool, llm
from livekit.agents.utils import http_context
from livekit.plugins import openai


def chat(server: str, key: str, model: str, max_tokens: int) -> llm.LLM:
    """Over POST /v1/chat/completions; server: http://HOST:PORT. An interruption closes the request."""
    return openai.LLM(base_url=f"{server}/v1", api_key=key, model=model, max_completion_tokens=max_tokens)


def responses(server: str, key: str, model: str, max_tokens: int) -> llm.LLM:
    """Over WS /v1/responses. An interruption closes the socket.

    Without `store=False` LiveKit goes on from the previous response and sends what the model said once more, so that
    the prompt has it twice. With it each turn sends the whole conversation, most of which the server has in its cache.
    """
    return openai.responses.LLM(
        base_url=f"{server}/v1/responses", api_key=key, model=model, max_output_tokens=max_tokens, store=False
    )


PROTOCOLS = {"chat": chat, "responses": responses}


class Weather(Agent):
    """Knows the weather, given that the model asks the tool."""

    def __init__(self) -> None:
        super().__init__(instructions="You answer in one sentence. Ask the tool about the weather.")

    @function_tool
    async def weather(self, city: Literal["Lima", "Nairobi", "Oslo"]) -> str:
        """The weather of a city at this moment."""
        return f"{city}: rain, 4 degrees"


async def talk(model: llm.LLM, question: str) -> None:
    """One turn; prints what the agent does. Raises APIError when the server refuses, or cuts the reply off."""
    async with http_context.open(), model, AgentSession(llm=model) as session:
        await session.start(Weather())
        turn = await session.run(user_input=question)
        for event in turn.events:
            match event.type:
                case "function_call":
                    print(f"calls {event.item.name} {event.item.arguments}")
                case "message":
                    print(event.item.text_content)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="One question to an agent that has a tool.")
    parser.add_argument("question", nargs="?", default="What is the weather like in Oslo?")
    parser.add_argument("--server", default="http://127.0.0.1:8377")
    parser.add_argument("--key", default="unused")
    parser.add_argument("--model", default="default")
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--protocol", choices=PROTOCOLS, default="chat")
    given = parser.parse_args(arguments)
    model = PROTOCOLS[given.protocol](given.server, given.key, given.model, given.max_tokens)
    asyncio.run(talk(model, given.question))


if __name__ == "__main__":
    main()
