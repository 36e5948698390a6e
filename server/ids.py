"""Ids of what clients see: sessions, conversations, items, responses."""

from __future__ import annotations

import uuid
from collections.abc import Callable

NewId = Callable[[str], str]  # a prefix to an id that is not in use


def random_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"
