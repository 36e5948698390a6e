"""Programs of tests/clients/ that run in `.venv-clients`, which `make clients` makes, against a live server."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openai
import pytest
from service import MODEL_ID, LiveServer, wait_until_idle

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv-clients"
CONTEXT = 16384  # a reply without an end takes long enough to be cut off


def need(package: str) -> None:
    """Skips where the package, a path below site-packages, is not installed."""
    if not list(ENVIRONMENT.glob(f"lib/python*/site-packages/{package}")):
        pytest.skip(f"{package} is not installed in .venv-clients: `make clients` does it.")


def run(program: Path, *arguments: str) -> str:
    """What the program prints; it finds the examples as modules."""
    done = subprocess.run(
        [ENVIRONMENT / "bin" / "python", program, *arguments],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "examples")},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def turns(program: str, live: LiveServer, protocol: str) -> dict[str, Any]:
    """What a program of tests/clients/ found; afterwards nothing may run, and what was cut off was not written on."""
    before = live.service.loop.stats().generated_tokens
    found: dict[str, Any] = json.loads(run(ROOT / "tests" / "clients" / program, live.url, protocol))
    wait_until_idle(live.service)
    assert live.service.loop.stats().generated_tokens - before < CONTEXT / 2
    return found


def reply(live: LiveServer, *turns: str, **asked: Any) -> str:
    """The reply of a chat completion to a conversation: user, assistant, user, …"""
    messages: Sequence[Any] = [
        {"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(turns)
    ]
    with openai.OpenAI(base_url=f"{live.url}/v1", api_key="unused") as client:
        choice = client.chat.completions.create(model=MODEL_ID, messages=messages, **asked).choices[0]
    assert choice.finish_reason == "stop"
    return choice.message.content or ""
