from __future__ import annotations

import json
import logging
import logging.config
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from realtime_client import address, events_until, say, user
from service import live_server
from websockets.sync.client import connect

from paceline.server.context import Settings
from paceline.server.key_file import KeyFile
from paceline.server.limits import Allowance
from paceline.server.logs import log_config, log_event, uvicorn_level
from paceline.server.service import Service

MARK = "tangerine"


@contextmanager
def logging_as(level: str, form: Any) -> Iterator[None]:
    """As the command configures it; afterwards as before."""
    names = ("", "uvicorn", "uvicorn.error", "uvicorn.access")
    loggers = [logging.getLogger(name) for name in names]
    before = [(logger.level, list(logger.handlers), logger.propagate) for logger in loggers]
    for logger in loggers[1:]:  # as in a new process, whatever servers of other tests have set
        logger.setLevel(logging.NOTSET)
        logger.handlers[:] = []
        logger.propagate = True
    logging.config.dictConfig(log_config(level, form))
    try:
        yield
    finally:
        for logger, (old, handlers, propagate) in zip(loggers, before, strict=True):
            logger.setLevel(old)
            logger.handlers[:] = handlers
            logger.propagate = propagate


def one_line(capsys: pytest.CaptureFixture[str], form: str, log: logging.Logger, *arguments: Any, **more: Any) -> str:
    with logging_as("info", form):
        log.info(*arguments, **more)
    return capsys.readouterr().err


def test_a_line_in_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_as("info", "text"):
        log_event("reply", id="r1", tokens=3, name=None)
    assert capsys.readouterr().err == "INFO paceline.server reply id=r1 tokens=3\n"
    with logging_as("info", "json"):
        log_event("reply", id="r1", tokens=3, name=None)
    body = json.loads(capsys.readouterr().err)
    assert body.pop("time").endswith("Z")
    assert body == {"level": "info", "logger": "paceline.server", "message": "reply", "id": "r1", "tokens": 3}
    with logging_as("warning", "json"):
        log_event("reply", id="r1")
    assert capsys.readouterr().err == ""


def test_requests_are_logged_without_their_query(capsys: pytest.CaptureFixture[str]) -> None:
    access = logging.getLogger("uvicorn.access")
    line = ('%s - "%s %s HTTP/%s" %d', "127.0.0.1:5", "GET", f"/v1/realtime?key={MARK}", "1.1", 200)
    text = one_line(capsys, "text", access, *line)
    assert text == "INFO uvicorn.access http client=127.0.0.1:5 method=GET path=/v1/realtime status=200\n"
    body = json.loads(one_line(capsys, "json", access, *line))
    assert (body["path"], body["status"]) == ("/v1/realtime", 200)


def test_a_traceback_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_as("info", "json"):
        try:
            raise ValueError("broken")
        except ValueError:
            logging.getLogger("paceline.server").exception("It failed")
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "ValueError: broken" in json.loads(err)["exception"]


def test_uvicorn_shows_no_frames() -> None:
    assert [uvicorn_level(level) for level in ("debug", "info", "warning")] == ["info", "info", "warning"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_is_said_is_in_no_log(
    service: Service, tmp_path: Path, capfd: pytest.CaptureFixture[str], form: str
) -> None:
    """Prompts, replies, keys, headers and queries, on every protocol, at every level."""
    file = KeyFile(tmp_path / "keys.json")
    key = file.add("anna", Allowance(concurrency=4))
    settings = Settings(api_keys=(f"own-{MARK}",), keys=file.path, log_level="debug")
    said = {"messages": [{"role": "user", "content": MARK}], "max_tokens": 4, "x": MARK}
    with logging_as("debug", form), live_server(service, settings) as live:
        url = f"{live.url}/v1/chat/completions?{MARK}=1"
        for bearer in (key, f"own-{MARK}", f"wrong-{MARK}"):
            headers = {"authorization": f"Bearer {bearer}", "x-mark": MARK}
            httpx.post(url, headers=headers, json={**said, "stop": MARK}, trust_env=False)
            httpx.post(url, headers=headers, json={**said, "stream": True}, trust_env=False)
            httpx.post(url, headers=headers, json={**said, "temperature": MARK}, trust_env=False)
            httpx.get(f"{live.url}/v1/models/{MARK}", headers={**headers, "origin": f"http://{MARK}"}, trust_env=False)
        with connect(
            f"{address(live)}?{MARK}", additional_headers={"authorization": f"Bearer {key}"}, proxy=None
        ) as ws:
            say(ws, MARK)
            say(ws, "session.update", session={"instructions": MARK})
            say(ws, "response.create", response={"input": [user(MARK)], "max_output_tokens": 4})
            events_until(ws, "response.done")
    lines = [line for line in capfd.readouterr().err.splitlines() if not _is_clients(line)]
    everything = "\n".join(lines)
    assert MARK not in everything.replace(f"/v1/models/{MARK}", "")  # paths are no secrets
    assert key not in everything
    assert everything.count("anna") >= 3
    assert "refused" in everything
    assert "invalid_api_key" in everything
    if form == "json":
        replies = [body for line in lines if (body := json.loads(line))["message"] == "reply"]
        assert {reply["protocol"] for reply in replies} == {"chat", "realtime"}
        wanted = {"id", "caller", "name", "model", "prompt_tokens", "cached_tokens", "output_tokens", "ttft_ms"}
        assert all(
            wanted | {"finish", "speculation", "mean_accepted"} <= reply.keys() for reply in replies if "name" in reply
        )
        assert all(reply["ttft_ms"] > 0 and 1 <= reply["output_tokens"] <= 4 for reply in replies)


def _is_clients(line: str) -> bool:
    """Said by a client of this test, in the same process."""
    return any(name in line for name in ("websockets.client", "httpx", "httpcore"))
