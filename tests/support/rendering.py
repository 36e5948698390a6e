"""Chat templates on a small tokenizer that has the special tokens of all of them, and as transformers renders them."""

from __future__ import annotations

from typing import Any

from vocabularies import byte_level_metadata, text_assets

from paceline.server.chat_template import ChatTemplate
from paceline.server.tokenizer import Tokenizer


def _chatml_tokenizer() -> Tokenizer:
    backend = Tokenizer.from_assets(text_assets(byte_level_metadata()))._backend
    backend.add_special_tokens(["<|start|>", "<|stop|>", "[INST]", "[/INST]"])
    backend.add_tokens(["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"])
    return Tokenizer.from_assets(text_assets(tokenizer_json=backend.to_str()))


TOKENIZER = _chatml_tokenizer()
BOS, EOS = "<|endoftext|>", "<|im_end|>"
NAMES = tuple(TOKENIZER.special_tokens)


def template(source: str | None, tokenizer: Tokenizer = TOKENIZER) -> ChatTemplate:
    return ChatTemplate(source, BOS, EOS, tokenizer)


def transformers_tokenizer(tokenizer: Tokenizer, bos: str, eos: str, source: str) -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer._backend, bos_token=bos, eos_token=eos, chat_template=source
    )
