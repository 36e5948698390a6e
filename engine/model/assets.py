"""What a checkpoint knows about text, handed on unread: the engine never sees text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TextAssets:
    """Raw material for a tokenizer and a chat template."""

    tokenizer_json: str | None  # the text of tokenizer.json
    gguf: Mapping[str, Any] | None  # GGUF metadata, when there is no tokenizer.json
    chat_template: str | None  # Jinja source
    bos_token: str | None
    eos_token: str | None
    eos_ids: tuple[int, ...]  # every token that ends a turn
