"""A realtime session driven by hand: a real committer, tokens chosen by the test, no engine and no socket."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vocabularies import byte_level_tokenizer

from paceline.engine.errors import RequestError
from paceline.engine.request import Delta, Finish
from paceline.server.committer import Committer
from paceline.server.conversation import Conversation
from paceline.server.parameters import Limits
from paceline.server.reply_parts import PartReader
from paceline.server.reply_reader import ReplyReader
from paceline.server.session import Session
from paceline.server.session_outputs import Abort, Begin, Output, Send, Warm
from paceline.server.stop_strings import StopStrings
from paceline.server.text_decoder import Shown
from paceline.server.thinking import Tags
from paceline.server.tokenizer import Tokenizer
from paceline.server.tool_formats.hermes import Hermes

# The events of one reply of two steps, in the order clients rely on.
REPLY = [
    "response.created",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
]
LIMITS = Limits(vocab_size=100, speculators=("auto", "none"), max_nodes=16)


def calling(response_id: str) -> PartReader:
    """Reads thoughts and calls of any tool, as Hermes and Qwen write them."""
    tags = Tags("<think>", "</think>", "<think>")
    return ReplyReader(tags=tags, opened=False, format=Hermes(Shown({})), key=response_id)


@dataclass
class HandReply:
    """What the session reads of a running generation."""

    committer: Committer
    seed: int = 5

    def metrics(self) -> dict[str, Any]:
        return {"time_to_first_token_ms": 1.0, "speculative_decoding": self.committer.figures.body()}


class Driver:
    """The client and the shell of one session in one: what the client gets is in `events`."""

    def __init__(
        self, max_items: int = 100, reader: Callable[[str], PartReader] | None = None, patient: bool = False
    ) -> None:
        """reader: of a reply, made from its id. patient: what begins waits for `answer`."""
        numbers = itertools.count(1)
        self.tokenizer: Tokenizer = byte_level_tokenizer()
        self.session = Session(
            model="tiny",
            limits=LIMITS,
            conversation=Conversation(max_items=max_items, max_chars=10_000),
            new_id=lambda prefix: f"{prefix}_{next(numbers)}",
        )
        self._reader = reader
        self._patient = patient
        self.begun: list[Begin] = []
        self.waiting: list[Begin] = []
        self.replies: dict[str, HandReply] = {}
        self.commands: list[Output] = []
        self.events: list[dict[str, Any]] = []
        self.take(self.session.open())

    def take(self, outputs: Sequence[Output]) -> list[dict[str, Any]]:
        """Carries out commands, keeps and returns events."""
        before = len(self.events)
        for output in outputs:
            if isinstance(output, Send):
                self.events.append(output.event)
            else:
                self.commands.append(output)
            if isinstance(output, Begin):
                self.begun.append(output)
                self.waiting.append(output)
                if not self._patient:
                    self.answer("begin")
            if isinstance(output, Abort):
                self.waiting = [begin for begin in self.waiting if begin.response_id != output.response_id]
        return self.events[before:]

    def answer(self, how: Literal["begin", "refuse", "fail"]) -> None:
        """What the shell does about the response that has waited longest for it, or about one that has begun."""
        if how == "fail":
            for response_id in list(self.replies)[:1]:
                self.take(self.session.fail(response_id, "It broke."))
        elif self.waiting:
            response_id = self.waiting.pop(0).response_id
            if how == "refuse":
                self.take(self.session.refuse(response_id, RequestError("Too long; shorten it.")))
                return
            reply = HandReply(
                Committer(
                    self.tokenizer,
                    stops=StopStrings(()),
                    stop_ids=(2,),
                    prompt_tokens=7,
                    reader=None if self._reader is None else self._reader(response_id),
                )
            )
            self.replies[response_id] = reply
            self.take(self.session.begin(response_id, reply))

    @property
    def warms(self) -> list[Warm]:
        return [command for command in self.commands if isinstance(command, Warm)]

    def say(self, kind: str, **fields: Any) -> list[dict[str, Any]]:
        return self.take(self.session.receive(json.dumps({"type": kind, **fields})))

    def user(self, text: str, **item: Any) -> list[dict[str, Any]]:
        content = [{"type": "input_text", "text": text}]
        return self.say(
            "conversation.item.create", item={"type": "message", "role": "user", "content": content, **item}
        )

    def create(self, **response: Any) -> str:
        """Starts a response with `response.create`; returns its id."""
        self.say("response.create", response=response)
        return self.begun[-1].response_id

    def step(self, response_id: str, text: str, finish: Finish | None = None, **delta: Any) -> list[dict[str, Any]]:
        """The engine made the tokens of `text` in one step."""
        return self.step_ids(response_id, self.tokenizer.encode(text), finish, **delta)

    def step_ids(
        self, response_id: str, ids: Sequence[int], finish: Finish | None = None, **delta: Any
    ) -> list[dict[str, Any]]:
        made = Delta(request_id=response_id, tokens=tuple(ids), finish=finish, **delta)
        return self.take(self.session.piece(response_id, self.replies[response_id].committer.push(made)))


def types(events: Sequence[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def error_of(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The one event, which is an error in the form clients know."""
    assert types(events) == ["error"]
    error: dict[str, Any] = events[0]["error"]
    assert set(error) == {"type", "code", "message", "param", "event_id"}
    assert error["message"].endswith(".")
    return error
