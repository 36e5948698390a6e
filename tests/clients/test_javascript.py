"""The stock openai SDK for JavaScript, in Node, against the real server over a tiny model."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from realtime_session import REPLY
from service import MODEL_ID, LiveServer, running_server

ITEMS = ("conversation.item.added", "conversation.item.done")  # the user's message has them too
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    if shutil.which("node") is None:
        pytest.skip("Node is not installed.")
    if not (HERE / "node_modules" / "openai").is_dir():
        pytest.skip("The SDK is not installed: `make test` fetches it where npm is.")
    with running_server(tmp_path_factory.mktemp("javascript")) as server:
        yield server


def run(program: str, live: LiveServer) -> dict[str, Any]:
    done = subprocess.run(
        ["node", HERE / program, live.url, MODEL_ID], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_chat(live: LiveServer) -> None:
    found = run("chat.mjs", live)
    assert found["text"]
    assert (found["finish"], found["usage"]) == ("length", 12)
    assert found["streamed"] == {"text": found["text"], "finish": "length", "usage": 12}
    assert found["refusal"] == {"status": 400, "param": "n"}
    assert found["models"] == [MODEL_ID]


def test_realtime(live: LiveServer) -> None:
    found = run("realtime.mjs", live)
    assert found["text"] == run("chat.mjs", live)["text"]
    assert (found["status"], found["usage"]) == ("incomplete", 12)
    of_the_reply = [kind for kind in found["seen"] if kind in REPLY and kind not in ITEMS]
    assert list(dict.fromkeys(of_the_reply)) == [kind for kind in dict.fromkeys(REPLY) if kind not in ITEMS]


def test_responses(live: LiveServer) -> None:
    found = run("responses.mjs", live)
    assert found["text"] == found["streamed"] == found["spoken"] == run("chat.mjs", live)["text"]
    assert (found["status"], found["socket"], found["usage"]) == ("incomplete", "incomplete", 12)
    assert found["order"] == list(range(len(found["order"])))
    assert found["chained"]
