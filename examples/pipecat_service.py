"""Pipecat with Paceline as its language model: over chat completions, or over the Responses socket.

    pip install pipecat-ai
    python examples/pipecat_service.py                        # chat completions
    python examples/pipecat_service.py --protocol responses   # one socket for the conversation; a cancel is a message

Put the service where a voice pipeline has its language model, between the context aggregators. Here the pipeline is
text alone: a question, a tool, the answer.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any, Self

from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.frames.frames import (
    EndFrame,
    ErrorFrame,
    Frame,
    FunctionCallsStartedFrame,
    InterruptionFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import AssistantTurnStoppedMessage, LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.llm_service import FunctionCallParams
from pipecat.services.openai.llm import OpenAILLMService
from pipecat.services.openai.responses.llm import OpenAIResponsesLLMService
from pipecat.workers.runner import WorkerRunner


def chat(server: str, key: str, model: str, max_tokens: int, **body: Any) -> OpenAILLMService:
    """Over POST /v1/chat/completions. An interruption closes the request, and the server stops within one step.

    server: http://HOST:PORT. body: Paceline's own fields, such as speculation or seed.
    """
    settings = OpenAILLMService.Settings(model=model, max_completion_tokens=max_tokens, extra={"extra_body": body})
    return OpenAILLMService(base_url=f"{server}/v1", api_key=key, settings=settings)


def responses(server: str, key: str, model: str, max_tokens: int, **body: Any) -> OpenAIResponsesLLMService:
    """Over WS /v1/responses. A turn sends what is new alone, and an interruption is a `response.cancel`."""
    settings = OpenAIResponsesLLMService.Settings(model=model, max_completion_tokens=max_tokens, extra=body)
    return OpenAIResponsesLLMService(
        base_url=f"{server}/v1",
        ws_url=f"{server.replace('http', 'ws', 1)}/v1/responses",
        api_key=key,
        settings=settings,
    )


PROTOCOLS = {"chat": chat, "responses": responses}


class Speaker(FrameProcessor):
    """Stands for a synthesiser: prints what it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.calling = False

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case LLMTextFrame():
                self.said.append(frame.text)
                print(frame.text, end="", flush=True)
            case FunctionCallsStartedFrame():
                self.calling = True
            case LLMFullResponseStartFrame():
                self.calling = False
            case LLMFullResponseEndFrame():
                print()
        await self.push_frame(frame, direction)


class Conversation:
    """A pipeline of a service and a speaker, as an asynchronous context."""

    def __init__(self, service: FrameProcessor, tools: Sequence[FunctionSchema]) -> None:
        self.speaker = Speaker()
        self._context = LLMContext(tools=list(tools))
        self._ended = asyncio.Event()
        self._mistakes: list[str] = []
        keeper = LLMContextAggregatorPair(self._context).assistant()
        keeper.add_event_handler("on_assistant_turn_stopped", self._turn_stopped)
        self._worker = PipelineWorker(Pipeline([service, self.speaker, keeper]))
        self._worker.add_event_handler("on_pipeline_error", self._note)

    async def __aenter__(self) -> Self:
        runner = WorkerRunner()
        await runner.add_workers(self._worker)
        self._running = asyncio.create_task(runner.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._worker.queue_frame(EndFrame())
        await self._running

    async def ask(self, text: str) -> list[str]:
        """One turn; returns the pieces of its answer. Raises RuntimeError for what the service could not do."""
        self.speaker.said.clear()
        self._ended.clear()
        self._context.add_message({"role": "user", "content": text})
        await self._worker.queue_frame(LLMContextFrame(self._context))
        await self._ended.wait()
        if self._mistakes:
            raise RuntimeError(self._mistakes.pop())
        return list(self.speaker.said)

    async def interrupt(self) -> None:
        """The user breaks in."""
        await self._worker.queue_frame(InterruptionFrame())

    async def _turn_stopped(self, _: FrameProcessor, turn: AssistantTurnStoppedMessage) -> None:
        if turn.content or not self.speaker.calling:  # else the reply that has seen the result is still to come
            self._ended.set()

    async def _note(self, _: PipelineWorker, frame: ErrorFrame) -> None:
        self._mistakes.append(frame.error)
        self._ended.set()


async def weather(params: FunctionCallParams) -> None:
    print(f"calls {params.function_name} {dict(params.arguments)}")
    await params.result_callback(f"{params.arguments.get('city')}: rain, 4 degrees")


TOOL = FunctionSchema(
    name="weather",
    description="The weather of a city at this moment.",
    properties={"city": {"type": "string", "enum": ["Lima", "Nairobi", "Oslo"]}},
    required=["city"],
    handler=weather,
)


async def talk(service: FrameProcessor, question: str) -> None:
    async with Conversation(service, [TOOL]) as conversation:
        await conversation.ask(question)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="One question to a model that has a tool.")
    parser.add_argument("question", nargs="?", default="What is the weather like in Oslo?")
    parser.add_argument("--server", default="http://127.0.0.1:8377")
    parser.add_argument("--key", default="unused")
    parser.add_argument("--model", default="default")
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--protocol", choices=PROTOCOLS, default="chat")
    given = parser.parse_args(arguments)
    service = PROTOCOLS[given.protocol](given.server, given.key, given.model, given.max_tokens)
    asyncio.run(talk(service, given.question))


if __name__ == "__main__":
    main()
