"""What holds for every answer, whatever was sent, and for the server afterwards."""

from __future__ import annotations

import json
import re
from typing import Any

from service import LiveServer, wait_until_idle

Json = dict[str, Any]

_PATH = re.compile(r"[a-z]+[._\[][a-z0-9_.\[\]]+$")  # of a field: response.tools, top_k, stop[0]


def check_error(error: Json, sent: Any) -> None:
    """A sentence, its kind, and the field that it begins with, if it begins with one."""
    message = error["message"]
    assert message, error
    assert "\n" not in message, error
    assert message[-1] in ".)", error
    assert error["type"] in ("invalid_request_error", "rate_limit_error"), error
    assert error["code"] is None or isinstance(error["code"], str), error
    first = message.split(" ", 1)[0]
    if _PATH.match(first) or (isinstance(sent, dict) and first in sent):
        assert isinstance(error["param"], str), error


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def check_at_rest(live: LiveServer) -> None:
    """Nothing runs, and every block is accounted for."""
    wait_until_idle(live.service)
    stats = live.service.loop.stats()
    assert stats.blocks_free + stats.blocks_cached + stats.blocks_held == stats.blocks_total
    assert live.service.healthy
