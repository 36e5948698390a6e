"""A session of the Responses API driven by hand: a real committer, tokens chosen by the test, no engine, no socket."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

from realtime_session import LIMITS, HandReply
from responses_api import LAST, validate
from vocabularies import byte_level_tokenizer

from paceline.engine.request import Delta, Finish
from paceline.server.committer import Committer
from paceline.server.parameters import Parameters
from paceline.server.reply_parts import CallArguments, CallBegin, Part, Thought, Words
from paceline.server.responses.items import Message
from paceline.server.responses.request import read_request
from paceline.server.responses.session import Begin, Output, ResponsesSession
from paceline.server.responses.store import ResponseStore
from paceline.server.session_outputs import Abort, Send
from paceline.server.stop_strings import StopStrings
from paceline.server.tokenizer import Tokenizer


class MarkedReader:
    """`^` begins a thought and ends it, `{` begins a call of `look` and `}` ends it; held back until its mark is whole:
    nothing."""

    def __init__(self) -> None:
        self.called = False
        self.thinking = False
        self.over = False
        self._calls = 0
        self._calling = False

    def push(self, text: str) -> list[Part]:
        parts: list[Part] = []
        for character in text:
            if character == "^":
                self.thinking = not self.thinking
            elif character == "{":
                parts += [CallBegin(self._calls, f"call_{self._calls}", "look"), CallArguments(self._calls, "{")]
                self._calling = True
            elif self._calling:
                parts.append(CallArguments(self._calls, character))
                if character == "}":
                    self._calls, self._calling, self.called = self._calls + 1, False, True
            else:
                parts.append(Thought(character) if self.thinking else Words(character))
        return parts

    def close(self) -> list[Part]:
        return []


class Driver:
    """The client and the shell of one session in one: what the client gets is in `events`, each of it valid."""

    def __init__(self, store: ResponseStore | None = None) -> None:
        numbers = itertools.count(1)
        self.tokenizer: Tokenizer = byte_level_tokenizer()
        self.store = store or ResponseStore(max_number=100, max_chars=10**6, lifetime_s=60)
        self.session = ResponsesSession(
            model="tiny",
            names=self.tokenizer,
            read=lambda fields: read_request(
                fields, LIMITS, Parameters(), find=lambda item: self.store.item("", item), max_items=100
            ),
            find=lambda response_id: self.store.find("", response_id),
            keep=lambda stored: self.store.put("", stored),
            max_items=100,
            new_id=lambda prefix: f"{prefix}_{next(numbers)}",
        )
        self.begun: list[Begin] = []
        self.aborted: list[str] = []
        self.replies: dict[str, HandReply] = {}
        self.events: list[dict[str, Any]] = []
        self.hold = False  # prompts take for ever

    def take(self, outputs: Sequence[Output]) -> list[dict[str, Any]]:
        """Carries out commands, keeps and returns events."""
        before = len(self.events)
        for output in outputs:
            match output:
                case Send(event):
                    validate(event, socket=True)
                    self.events.append(json.loads(json.dumps(event)))
                case Abort(response_id):
                    self.aborted.append(response_id)
                case Begin():
                    self.begun.append(output)
                    if not self.hold:
                        self.start(output)
        return self.events[before:]

    def start(self, begin: Begin) -> list[dict[str, Any]]:
        committer = Committer(
            self.tokenizer, stops=StopStrings(()), stop_ids=(2,), prompt_tokens=7, reader=MarkedReader()
        )
        self.replies[begin.response_id] = HandReply(committer)
        return self.take(self.session.begin(begin.response_id, self.replies[begin.response_id], begin.items))

    def say(self, kind: str, **fields: Any) -> list[dict[str, Any]]:
        return self.take(self.session.receive(json.dumps({"type": kind, **fields})))

    def create(self, said: Any = "hi", **fields: Any) -> str:
        """Asks for a response; returns the id of the one that began last."""
        self.say("response.create", input=said, **fields)
        return self.begun[-1].response_id

    def step(self, response_id: str, text: str, finish: Finish | None = None, **delta: Any) -> list[dict[str, Any]]:
        """The engine made the tokens of `text` in one step."""
        ids = tuple(self.tokenizer.encode(text))
        made = Delta(request_id=response_id, tokens=ids, finish=finish, **delta)
        return self.take(self.session.piece(response_id, self.replies[response_id].committer.push(made)))

    @property
    def said(self) -> list[tuple[str, str]]:
        """Who says what in the conversation of the latest prompt."""
        return [(item.role, item.text) for item in self.begun[-1].items if isinstance(item, Message)]

    def last(self) -> dict[str, Any]:
        """The response of the latest last event."""
        return next(event["response"] for event in reversed(self.events) if event["type"] in LAST)


def types(events: Sequence[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def error_of(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The one event, which is an error in the form clients know."""
    assert types(events) == ["error"]
    error: dict[str, Any] = events[0]["error"]
    assert set(error) == {"type", "code", "message", "param"}
    assert error["message"].endswith(".")
    assert events[0]["status"] >= 400
    return error
