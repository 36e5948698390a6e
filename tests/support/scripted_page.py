"""A server for the page that says what no real model would."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

from paceline.server.page import page_files
from paceline.server.page_files import HeldFile

Event = dict[str, Any]


@dataclass
class Scripted:
    """Serves the built page with the real server's headers; every response.create is answered by `reply`, a
    response.cancel by the end of the response, everything else by `answer`."""

    reply: Callable[[ServerConnection, Event], None] = lambda connection, event: None
    resume: Callable[[ServerConnection, Event], None] = lambda connection, event: forgotten(connection, event)
    answer: Callable[[ServerConnection, Event], None] = lambda connection, event: None
    key: str = ""
    model: str = "scripted"
    speculators: tuple[str, ...] = ("auto", "suffix", "none")
    sessions: list[list[Event]] = field(default_factory=list)  # what the page sent, by session
    connections: list[ServerConnection] = field(default_factory=list)  # of the sessions
    url: str = ""
    files: Mapping[str, HeldFile] = field(default_factory=page_files)  # by path

    def http(self, connection: ServerConnection, request: Request) -> Response | None:
        path = request.path.partition("?")[0]
        bearer = request.headers.get("authorization") == f"Bearer {self.key}"
        offered = f"openai-insecure-api-key.{self.key}" in request.headers.get("sec-websocket-protocol", "")
        if path.startswith("/v1/") and self.key and not bearer and not offered:
            return connection.respond(HTTPStatus.UNAUTHORIZED, "")
        if path == "/v1/realtime":
            return None
        if path == "/v1/models":
            models = [{"id": self.model, "object": "model", "speculators": self.speculators}]
            return connection.respond(HTTPStatus.OK, json.dumps({"object": "list", "data": models}))
        file = self.files.get(path)
        if file is None:
            return connection.respond(HTTPStatus.NOT_FOUND, "")
        answer = file.answer(request.headers)
        length = {} if answer.status == HTTPStatus.NOT_MODIFIED else {"content-length": str(len(answer.body))}
        headers = Headers({**answer.headers, **length, "connection": "close"})
        return Response(answer.status, HTTPStatus(answer.status).phrase, headers, answer.body)

    def talk(self, connection: ServerConnection) -> None:
        heard: list[Event] = []
        self.sessions.append(heard)
        self.connections.append(connection)
        say(connection, "session.created", session={"model": self.model})
        try:
            for message in connection:
                event = json.loads(message)
                heard.append(event)
                if event["type"] == "response.create":
                    self.reply(connection, event)
                elif event["type"] == "x_response.resume":
                    self.resume(connection, event)
                elif event["type"] == "response.cancel":
                    say(connection, "response.done", response={"id": "r", "status": "cancelled"})
                else:
                    self.answer(connection, event)
        except ConnectionClosed:
            pass  # the page went on to another session

    def drop(self, code: int) -> None:
        """Every connection there is breaks."""
        for connection in self.connections:
            connection.close(code)

    def said(self) -> list[tuple[str, str]]:
        """Role and text of each item in the newest session, as a server would have them."""
        items, pending = [], ""
        for event in self.sessions[-1]:
            match event["type"]:
                case "conversation.item.create":
                    items.append((event["item"]["role"], event["item"]["content"][0]["text"]))
                case "input_text.append":
                    pending += event["text"]
                case "input_text.clear":
                    pending = ""
                case "input_text.commit":
                    items.append(("user", pending))
                    pending = ""
        return items


def say(connection: ServerConnection, kind: str, **fields: object) -> None:
    connection.send(json.dumps({"type": kind, "event_id": "e", **fields}))


def forgotten(connection: ServerConnection, event: Event) -> None:
    """There is nothing to resume."""
    say(connection, "error", error={"code": "response_not_found", "message": "Gone.", "event_id": event["event_id"]})


def stream(connection: ServerConnection, *pieces: str, after: int = 0) -> None:
    """The beginning of a reply: one step per piece, the first of one token, the others of two. after: the x_seq of the
    last piece that has arrived already."""
    if not after:
        say(connection, "response.created", response={"id": "r"})
    for i, piece in enumerate(pieces, after):
        counts = {"drafted": 3, "accepted": 1, "emitted": 2} if i else {"drafted": 0, "accepted": 0, "emitted": 1}
        say(connection, "response.output_text.delta", response_id="r", delta=piece, x_seq=i + 1, x_spec=counts)


def complete(connection: ServerConnection, *pieces: str, after: int = 0) -> None:
    stream(connection, *pieces, after=after)
    usage = {"output_tokens": 2 * len(pieces) - 1}
    say(connection, "response.done", response={"id": "r", "status": "completed", "usage": usage})


@contextmanager
def scripted_page() -> Iterator[Scripted]:
    """The script's server on a free loopback port, in a thread."""
    script = Scripted()

    def choose(connection: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
        return Subprotocol("realtime") if "realtime" in offered else None

    with serve(
        script.talk, "127.0.0.1", 0, process_request=script.http, select_subprotocol=choose, compression=None
    ) as server:
        script.url = f"http://127.0.0.1:{server.socket.getsockname()[1]}/"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield script
        server.shutdown()
        thread.join()
