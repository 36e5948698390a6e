"""One neutral request, asked in the words of each protocol of a live server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import MappingProxyType

import httpx
from chat_completions import CHAT, choice_of, events_of
from neutral import Answer, Asked, Json, Reply, assert_prompt_told, finish_of, joined, timeless
from responses_api import LAST, RESPONSES, output_text, text_of
from service import LiveServer
from websockets.sync.client import ClientConnection, connect


class Client:
    """Of one live server, over one HTTP connection and one socket of the Responses API."""

    def __init__(self, live: LiveServer) -> None:
        self.live = live
        self._http = httpx.Client(base_url=live.url, timeout=60)
        self._stack = ExitStack()
        self._socket = self._stack.enter_context(self.connect("responses"))

    def close(self) -> None:
        self._http.close()
        self._stack.close()

    def connect(self, protocol: str) -> ClientConnection:
        return connect(f"ws://127.0.0.1:{self.live.port}/v1/{protocol}", proxy=None)

    def chat_body(self, asked: Asked, mode: str) -> Reply:
        answer = self._http.post(CHAT, json=_chat(asked, mode))
        assert answer.status_code == 200, answer.text
        body = answer.json()
        return Reply(_of_choice(body["choices"][0], body["usage"]), timeless(body))

    def figures(self, asked: Asked, mode: str) -> Json:
        """How the speculation went."""
        figures: Json = self._http.post(CHAT, json=_chat(asked, mode)).json()["metrics"]["speculative_decoding"]
        return figures

    def choices(self, asked: Asked, mode: str, n: int) -> list[str]:
        """The texts of several choices, which are the same in the body and as a stream."""
        body = _chat(asked, mode) | {"n": n}
        texts = [choice["message"]["content"] for choice in self._http.post(CHAT, json=body).json()["choices"]]
        events = events_of(self._http.post(CHAT, json=body | {"stream": True}))
        assert [choice_of(events, index)["message"]["content"] for index in range(n)] == texts
        return texts

    def chat_chunks(self, asked: Asked, mode: str) -> list[Json]:
        """A stream as it comes, usage last."""
        body = _chat(asked, mode) | {"stream": True, "stream_options": {"include_usage": True}}
        return events_of(self._http.post(CHAT, json=body))

    def chat_stream(self, asked: Asked, mode: str) -> Reply:
        events = self.chat_chunks(asked, mode)
        usage = events[-1].pop("usage")
        assert events[-1]["choices"] == []
        choice = choice_of(events[:-1])
        rest = [{key: value for key, value in event.items() if key != "choices"} for event in events]
        answer = _of_choice(choice, usage)
        assert_prompt_told(events, answer)
        return Reply(answer, timeless([choice, usage, *_distinct(timeless(rest))]))

    def responses_body(self, asked: Asked, mode: str) -> Reply:
        answer = self._http.post(RESPONSES, json=_responses(asked, mode))
        assert answer.status_code == 200, answer.text
        return Reply(_of_response(answer.json()), timeless(answer.json()))

    def responses_events(self, asked: Asked, mode: str) -> list[Json]:
        """A stream as it comes."""
        answer = self._http.post(RESPONSES, json=_responses(asked, mode) | {"stream": True})
        assert answer.status_code == 200, answer.text
        frames = [frame for frame in answer.text.split("\n\n")[:-1] if frame != ": ping"]
        return [json.loads(frame.partition("\n")[2].removeprefix("data: ")) for frame in frames]

    def responses_stream(self, asked: Asked, mode: str) -> Reply:
        return _streamed(self.responses_events(asked, mode))

    def responses_socket(self, asked: Asked, mode: str) -> Reply:
        self._socket.send(json.dumps({"type": "response.create", **_responses(asked, mode)}))
        events = _until(self._socket, *LAST)
        return _streamed(events)

    def realtime(self, asked: Asked, mode: str) -> Reply:
        """A conversation of items."""
        with self.connect("realtime") as socket:
            for role, content in asked.messages:
                _say(socket, "conversation.item.create", item=_item(role, content))
                _until(socket, "conversation.item.done")
            return self._realtime(socket, asked, mode)

    def typed(self, asked: Asked, mode: str) -> Reply:
        """The user's last words are sent as they are typed, and computed ahead."""
        *before, (role, content) = asked.messages
        assert role == "user"
        with self.connect("realtime") as socket:
            _say(socket, "session.update", session={"type": "realtime", **_realtime(asked, mode)})
            _until(socket, "session.updated")
            for earlier in before:
                _say(socket, "conversation.item.create", item=_item(*earlier))
                _until(socket, "conversation.item.done")
            for text in ("wrong", *(content[at : at + 7] for at in range(0, len(content), 7))):
                _say(socket, "input_text.append", text=text)
                if text == "wrong":
                    _say(socket, "input_text.clear")
            _say(socket, "input_text.commit")
            _until(socket, "conversation.item.done")
            return self._realtime(socket, asked, mode)

    def _realtime(self, socket: ClientConnection, asked: Asked, mode: str) -> Reply:
        _say(socket, "response.create", response=_realtime(asked, mode))
        events = [event for event in _until(socket, "response.done") if event["type"] != "x_input_text.prefilled"]
        response = events[-1]["response"]
        usage = response["usage"]
        items, thoughts = response["output"], [e["delta"] for e in events if e["type"] == "x_response.reasoning.delta"]
        calls = tuple((i["call_id"], i["name"], i["arguments"]) for i in items if i["type"] == "function_call")
        text = "".join(part["text"] for i in items if i["type"] == "message" for part in i["content"])
        assert text == "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
        assert usage["output_tokens"] == sum(e["x_spec"]["emitted"] for e in events if "x_spec" in e)
        answer = Answer(
            text=text,
            thoughts="".join(thoughts),
            calls=calls,
            finish=finish_of(response["status"], (response["status_details"] or {}).get("reason"), calls),
            prompt_tokens=usage["input_tokens"],
            cached_tokens=usage["input_token_details"]["cached_tokens"],
            output_tokens=usage["output_tokens"],
            reasoning_tokens=usage["output_token_details"].get("reasoning_tokens", 0),
        )
        assert_prompt_told(events, answer)
        return Reply(answer, joined(timeless(events)))


PROTOCOLS: Mapping[str, Callable[[Client, Asked, str], Reply]] = MappingProxyType(
    {
        "chat body": Client.chat_body,
        "chat stream": Client.chat_stream,
        "responses body": Client.responses_body,
        "responses stream": Client.responses_stream,
        "responses socket": Client.responses_socket,
        "realtime": Client.realtime,
        "realtime typed": Client.typed,
    }
)


def _say(socket: ClientConnection, kind: str, **fields: object) -> None:
    socket.send(json.dumps({"type": kind, **fields}))


def _until(socket: ClientConnection, *kinds: str) -> list[Json]:
    """What comes up to the first event of one of these kinds; an error fails."""
    events: list[Json] = []
    while not events or events[-1]["type"] not in kinds:
        events.append(json.loads(socket.recv(timeout=60)))
        assert events[-1]["type"] != "error", events[-1]
    return events


def _item(role: str, content: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": content}]}


def _named(asked: Asked, nested: bool) -> Json:
    """tool_choice in either spelling."""
    if asked.choice is None:
        return {}
    if asked.choice in ("required", "auto", "none"):
        return {"tool_choice": asked.choice}
    function = {"name": asked.choice}
    return {"tool_choice": {"type": "function", **({"function": function} if nested else function)}}


def _chat(asked: Asked, mode: str) -> Json:
    body = asked.shared(mode) | _named(asked, nested=True)
    body["messages"] = [{"role": role, "content": content} for role, content in asked.messages]
    if asked.max_tokens is not None:
        body["max_tokens"] = asked.max_tokens
    if asked.tools:
        body["tools"] = [{"type": "function", "function": tool} for tool in asked.tools]
    if asked.form is not None:
        body["response_format"] = asked.form
    if asked.logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": asked.logprobs}
    if asked.prediction is not None:
        body["prediction"] = {"type": "content", "content": asked.prediction}
    return body


def _flat(asked: Asked, mode: str) -> Json:
    """What realtime and responses spell alike."""
    body = asked.shared(mode) | _named(asked, nested=False)
    if asked.max_tokens is not None:
        body["max_output_tokens"] = asked.max_tokens
    if asked.tools:
        body["tools"] = [{"type": "function", "strict": False, **tool} for tool in asked.tools]  # chat's default
    return body


def _realtime(asked: Asked, mode: str) -> Json:
    body = _flat(asked, mode)
    if asked.form is not None:
        body["response_format"] = asked.form
    if asked.prediction is not None:
        body["prediction"] = {"type": "content", "content": asked.prediction}
    return body


def _responses(asked: Asked, mode: str) -> Json:
    body = _flat(asked, mode) | {"store": False}
    body["input"] = [{"role": role, "content": content} for role, content in asked.messages]
    if asked.form is not None:
        kind = asked.form["type"]
        flat = {"type": kind, **asked.form[kind]} if kind == "json_schema" else asked.form
        body["text"] = {"format": flat}
    if asked.logprobs is not None:
        body |= {"include": ["message.output_text.logprobs"], "top_logprobs": asked.logprobs}
    return body


def _of_choice(choice: Json, usage: Json) -> Answer:
    message = choice["message"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    logprobs = choice["logprobs"]
    return Answer(
        text=message["content"] or "",
        thoughts=message.get("reasoning_content") or "",
        calls=tuple(
            (call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls", ())
        ),
        finish=choice["finish_reason"],
        prompt_tokens=usage["prompt_tokens"],
        cached_tokens=usage["prompt_tokens_details"]["cached_tokens"],
        output_tokens=usage["completion_tokens"],
        reasoning_tokens=usage["completion_tokens_details"]["reasoning_tokens"],
        logprobs=None if logprobs is None else tuple(logprobs["content"]),
    )


def _streamed(events: list[Json]) -> Reply:
    response = events[-1]["response"]
    numbers = [event["sequence_number"] for event in events]
    assert numbers == sorted(set(numbers))  # those of deltas joined for a slow client are left out
    assert text_of(events) == output_text(response)
    assert [event["item"] for event in events if event["type"] == "response.output_item.done"] == response["output"]
    answer = _of_response(response)
    thoughts = [event["delta"] for event in events if event["type"] == "response.reasoning_text.delta"]
    assert answer.thoughts == "".join(thoughts)
    assert_prompt_told(events, answer)
    return Reply(answer, joined(timeless(events)))


def _of_response(response: Json) -> Answer:
    usage, items = response["usage"], response["output"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    calls = tuple((i["call_id"], i["name"], i["arguments"]) for i in items if i["type"] == "function_call")
    reason = (response["incomplete_details"] or {}).get("reason")
    return Answer(
        text="".join(part["text"] for part in parts),
        thoughts="".join(p["text"] for item in items if item["type"] == "reasoning" for p in item["content"]),
        calls=calls,
        finish=finish_of(response["status"], reason, calls),
        prompt_tokens=usage["input_tokens"],
        cached_tokens=usage["input_tokens_details"]["cached_tokens"],
        output_tokens=usage["output_tokens"],
        reasoning_tokens=usage["output_tokens_details"]["reasoning_tokens"],
        logprobs=tuple(entry for part in parts for entry in part["logprobs"]) or None,
    )


def _distinct(events: list[Json]) -> list[Json]:
    out: list[Json] = []
    for event in events:
        if event not in out:
            out.append(event)
    return out
