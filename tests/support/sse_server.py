"""A small OpenAI-compatible chat server on a real socket, to stand for "any other server" in the benchmark's tests."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route


@dataclass
class Behaviour:
    """How the server answers; the last word of the conversation's last message is echoed `words` times."""

    words: int = 4
    words_per_chunk: int = 1
    first_delay_s: float = 0.0
    delay_s: float = 0.0
    usage: bool = True
    figures: bool = False
    key: str | None = None
    fail: str | None = None  # any request whose last message holds this text gets a 400
    differ: bool = False  # speculation changes the text
    requests: list[dict[str, Any]] = field(default_factory=list)


def create(behaviour: Behaviour) -> Starlette:
    async def models(request: Request) -> Response:
        if behaviour.key is not None and request.headers.get("authorization") != f"Bearer {behaviour.key}":
            return JSONResponse({"error": {"message": "no such key"}}, status_code=401)
        return JSONResponse({"object": "list", "data": [{"id": "echo-1", "object": "model"}]})

    async def completions(request: Request) -> Response:
        body = await request.json()
        behaviour.requests.append(body)
        last = str(body["messages"][-1]["content"])
        if behaviour.fail is not None and behaviour.fail in last:
            return JSONResponse({"error": {"message": "that prompt is not liked"}}, status_code=400)
        return StreamingResponse(_events(behaviour, body, last.split()[-1]), media_type="text/event-stream")

    return Starlette(routes=[Route("/v1/models", models), Route("/v1/chat/completions", completions, methods=["POST"])])


async def _events(behaviour: Behaviour, body: dict[str, Any], word: str) -> AsyncIterator[bytes]:
    mode = (body.get("speculation") or {}).get("mode", "")
    count = min(behaviour.words, body["max_tokens"])
    suffix = "!" if behaviour.differ and mode == "auto" else ""
    await asyncio.sleep(behaviour.first_delay_s)
    yield b": ping\n\n" + _event(delta={"role": "assistant"})
    for start in range(0, count, behaviour.words_per_chunk):
        if start:
            await asyncio.sleep(behaviour.delay_s)
        n = min(behaviour.words_per_chunk, count - start)
        yield _event(delta={"content": f"{word}\u2028{suffix} " * n})
    yield _event(delta={}, finish="stop")
    if behaviour.usage:
        chunk: dict[str, Any] = {
            "choices": [],
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": count,
                "prompt_tokens_details": {"cached_tokens": 5},
            },
        }
        if behaviour.figures and mode != "none":
            chunk["metrics"] = {
                "speculative_decoding": {
                    "num_spec_steps": 4,
                    "num_draft_tokens": 8,
                    "num_accepted_draft_tokens": 6,
                }
            }
        yield b"data:" + orjson.dumps(chunk) + b"\r\n\r\n"
    yield b"data: [DONE]\n\n"


def _event(*, delta: dict[str, Any], finish: str | None = None) -> bytes:
    chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None}
    return b"data: " + orjson.dumps(chunk) + b"\n\n"


@contextlib.contextmanager
def running(app: Any) -> Iterator[str]:
    """Serve an ASGI app on a free port of 127.0.0.1 in a thread; yields its address."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the test server did not start")
            thread.join(0.01)
        host, port = server.servers[0].sockets[0].getsockname()
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        thread.join()
