"""What a voice loop gains by sending the transcript while the user still speaks, and what it does when he breaks in.

    pip install websockets orjson
    python examples/voice_loop.py               # time from the last word to the first clause, with append and without
    python examples/voice_loop.py --barge-in    # one turn, cut off and truncated to what was heard

The recogniser is a file: one JSON line for each partial transcript, {"at_ms", "text": all of it so far}, the last one
"final".
"""

from __future__ import annotations

import argparse
import statistics
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from websockets.sync.client import ClientConnection, connect

TRANSCRIPT = Path(__file__).with_name("transcript.jsonl")
INSTRUCTIONS = (
    "You are the voice of a travel agency. You answer in two or three short sentences, friendly and to the point, "
    "without lists, headings or links, because what you write is spoken."
)


@dataclass(frozen=True)
class Partial:
    """What the recogniser holds for said at `at_s`, counted from the first word."""

    at_s: float
    text: str


@dataclass(frozen=True)
class Turn:
    """Times in seconds from the last word."""

    first_text: float
    first_clause: float
    prompt_tokens: int
    cached_tokens: int


class VoiceLoop:
    """One conversation of a user who is heard and a synthesiser that wants clauses."""

    def __init__(self, socket: ClientConnection, max_tokens: int, conversation: str) -> None:
        """conversation: stands at the beginning of the prompt, so that only those that share it share the cache."""
        self.socket = socket
        self._sent = ""
        self.send(
            "session.update",
            session={
                "type": "realtime",
                "instructions": f"Conversation {conversation}.\n{INSTRUCTIONS}",
                "max_output_tokens": max_tokens,
                "temperature": 0.7,
                "seed": 1,
                "voice": {"clauses": True},
            },
        )

    def send(self, kind: str, **fields: Any) -> None:
        self.socket.send(orjson.dumps({"type": kind, **fields}).decode())

    def events(self) -> Iterator[dict[str, Any]]:
        """As they come. Raises RuntimeError for an error, but for a cancel that came too late."""
        for message in self.socket:
            event = orjson.loads(message)
            if event["type"] == "error" and event["error"]["code"] != "response_cancel_not_active":
                raise RuntimeError(event["error"]["message"])
            yield event

    def wait_for(self, kind: str) -> dict[str, Any]:
        for event in self.events():
            if event["type"] == kind:
                return event
        raise RuntimeError("The server closed the connection.")

    def hear(self, text: str) -> None:
        """The whole transcript so far. What was revised is taken back; the server keeps what both have in common."""
        if not text.startswith(self._sent):
            self.send("input_text.clear")
            self._sent = ""
        if text != self._sent:
            self.send("input_text.append", text=text[len(self._sent) :])
            self._sent = text

    def answer(self) -> None:
        """The user's turn has ended: what was heard becomes an item, and the model answers it."""
        self.send("input_text.commit")
        self.send("response.create")
        self._sent = ""


def read(path: Path, speed: float) -> list[Partial]:
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
    if not lines or not lines[-1].get("final"):
        raise SystemExit(f'{path} has no last line with "final": true.')
    return [Partial(line["at_ms"] / 1000 / speed, line["text"]) for line in lines]


def one_turn(loop: VoiceLoop, transcript: list[Partial], append: bool) -> Turn:
    """The user speaks, then the model. Without `append` the server hears of it when the last word was said."""
    loop.wait_for("session.updated")
    begin = time.perf_counter()
    for partial in transcript[:-1]:
        time.sleep(max(begin + partial.at_s - time.perf_counter(), 0))
        if append:
            loop.hear(partial.text)
    time.sleep(max(begin + transcript[-1].at_s - time.perf_counter(), 0))
    last_word = time.perf_counter()
    loop.hear(transcript[-1].text)
    loop.answer()
    first: dict[str, float] = {}
    for event in loop.events():
        first.setdefault(event["type"], time.perf_counter() - last_word)
        if event["type"] == "response.done":
            usage = event["response"]["usage"]
            return Turn(
                # A reply that says nothing has neither: what counts then is that it is over.
                first.get("response.output_text.delta", first["response.done"]),
                first.get("x_response.clause", first["response.done"]),
                usage["input_tokens"],
                usage["input_token_details"]["cached_tokens"],
            )
    raise RuntimeError("The server closed the connection.")


def compare(given: argparse.Namespace, transcript: list[Partial]) -> None:
    """Both ways in turns, so that whatever else the machine does meets both; prints medians and their ratio."""
    turns: dict[bool, list[Turn]] = {True: [], False: []}
    for round_number in range(given.rounds):
        for append in (round_number % 2 == 0, round_number % 2 == 1):
            with connection(given) as socket:
                turn = one_turn(VoiceLoop(socket, given.max_tokens, uuid.uuid4().hex), transcript, append)
            turns[append].append(turn)
            print(
                f"round {round_number + 1} {'with' if append else 'without'} append: "
                f"first text {turn.first_text * 1e3:.0f} ms, first clause {turn.first_clause * 1e3:.0f} ms; "
                f"{turn.cached_tokens} of {turn.prompt_tokens} tokens known",
                flush=True,
            )
    for name in ("first_text", "first_clause"):
        ahead, after = (statistics.median(getattr(turn, name) for turn in turns[append]) for append in (True, False))
        print(
            f"last word to {name.replace('_', ' ')}: {ahead * 1e3:.0f} ms with append, {after * 1e3:.0f} ms without: "
            f"{after / ahead:.2f} times"
        )


def barge_in(given: argparse.Namespace, transcript: list[Partial]) -> None:
    """The user breaks in behind the first clause: the reply ends, and the conversation keeps what was heard of it."""
    with connection(given) as socket:
        loop = VoiceLoop(socket, given.max_tokens, "1")
        loop.hear(transcript[-1].text)
        loop.answer()
        said, heard, item_id = "", 0, ""
        for event in loop.events():
            match event["type"]:
                case "response.output_text.delta":
                    said += event["delta"]
                case "x_response.clause" if not heard:
                    heard, item_id = event["end"], event["item_id"]
                    loop.send("response.cancel")
                case "response.done":
                    break
        print(f"the reply is {event['response']['status']}; said: {said!r}")
        if not item_id:
            return
        loop.send("conversation.item.truncate", item_id=item_id, content_index=0, x_text_end=heard)
        loop.wait_for("conversation.item.truncated")
        loop.send("conversation.item.retrieve", item_id=item_id)
        item = loop.wait_for("conversation.item.retrieved")["item"]
        print(f"heard, and in the next prompt: {item['content'][0]['text']!r}")
        loop.hear("Sorry, go on from there, please.")
        loop.answer()
        response = loop.wait_for("response.done")["response"]
        usage = response["usage"]
        known = usage["input_token_details"]["cached_tokens"]
        print(f"the next reply is {response['status']}; {known} of {usage['input_tokens']} tokens known")


def connection(given: argparse.Namespace) -> Any:
    return connect(
        given.url, additional_headers={"Authorization": f"Bearer {given.key}"} if given.key else None, compression=None
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A voice loop whose recogniser is a file.")
    parser.add_argument("--url", default="ws://127.0.0.1:8377/v1/realtime")
    parser.add_argument("--key", default="")
    parser.add_argument("--transcript", type=Path, default=TRANSCRIPT)
    parser.add_argument("--rounds", type=int, default=3, help="each with append and without")
    parser.add_argument(
        "--speed", type=float, default=1.0, help="how many times faster than the recording it is spoken"
    )
    parser.add_argument("--max-tokens", type=int, default=60)
    parser.add_argument("--barge-in", action="store_true", help="show what happens when the user breaks in")
    given = parser.parse_args(arguments)
    (barge_in if given.barge_in else compare)(given, read(given.transcript, given.speed))


if __name__ == "__main__":
    main()
