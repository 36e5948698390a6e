"""Texts for training, between files and tokens: the chat template taken apart, prompts, logged conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from paceline.engine.errors import ConfigError, ModelError, RequestError
from paceline.engine.model.assets import TextAssets
from paceline.spec.training.dialogues import Dialogue, Frame, Tokens

from .bench_prompts import load_prompts
from .chat_template import ChatTemplate
from .gguf_vocab import tokenizer_from_gguf
from .tokenizer import Tokenizer

_FIRST, _REPLY, _SECOND = "QQQ1", "QQQ2", "QQQ3"  # stand for what is said


def frame_of(template: ChatTemplate, tokenizer: Tokenizer) -> Frame:
    """Raises ModelError for a template that writes what is said in some other way than as it is."""
    messages = [
        {"role": "user", "content": _FIRST},
        {"role": "assistant", "content": _REPLY},
        {"role": "user", "content": _SECOND},
    ]
    opening, _ = template.prepare(messages[:1])
    whole, _ = template.prepare(messages)
    before, first, between = opening.partition(_FIRST)
    _, reply, rest = whole.partition(_REPLY)
    again, second, _ = rest.partition(_SECOND)
    parts = [tuple(tokenizer.encode_rendered(text)) for text in (before, between, again)]
    if not (first and reply and second and parts[1] and parts[2]):
        raise ModelError("The model's chat template cannot be taken apart, so the model cannot write conversations.")
    return Frame(*parts)


def text_files(assets: TextAssets) -> dict[str, bytes]:
    """The model's text side as files of a Hugging Face folder, for a model that shall mean the same by its tokens."""
    tokenizer = assets.tokenizer_json
    if tokenizer is None:
        tokenizer = tokenizer_from_gguf(assets.gguf or {}).to_str()
    config = {"bos_token": assets.bos_token, "eos_token": assets.eos_token, "chat_template": assets.chat_template}
    return {
        "tokenizer.json": tokenizer.encode(),
        "tokenizer_config.json": orjson.dumps({name: value for name, value in config.items() if value is not None}),
        "generation_config.json": orjson.dumps({"eos_token_id": assets.eos_ids}),
    }


def prompt_tokens(path: Path, template: ChatTemplate, tokenizer: Tokenizer) -> list[tuple[Tokens, list[Tokens]]]:
    """Of each prompt, the conversation up to where the model answers, and what the user says after that."""
    return [
        (tuple(template.encode(prompt.messages)), [tuple(tokenizer.encode(turn)) for turn in prompt.follow_ups])
        for prompt in load_prompts(path)
    ]


def logged_texts(path: Path, template: ChatTemplate, tokenizer: Tokenizer, frame: Frame, length: int) -> list[Dialogue]:
    """Conversations that were held, one JSON object a line: `messages` with answers in them, or `text`.

    What is longer than `length` tokens is cut off. Raises ConfigError for a line with neither, or with messages
    that the template refuses.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}); give a JSONL file of conversations.") from error
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise ConfigError(f"{path}, line {number}: not valid JSON ({error}).") from error
        match record:
            case {"text": str(text)} if text:
                tokens = tuple(tokenizer.encode(text))[:length]
                found.append(Dialogue(tokens, ((0, len(tokens)),)))
            case {"messages": [*messages]} if messages and all(isinstance(message, dict) for message in messages):
                try:
                    dialogue = _dialogue(messages, template, tokenizer, frame, length)
                except RequestError as error:
                    raise ConfigError(f"{path}, line {number}: {error}") from error
                if dialogue is None:
                    raise ConfigError(f"{path}, line {number}: no message has the role assistant and text in it.")
                found.append(dialogue)
            case _:
                raise ConfigError(f"{path}, line {number}: needs 'messages' or 'text' with text in it.")
    if not found:
        raise ConfigError(f"{path} holds no conversations; write one a line.")
    return found


def _dialogue(
    messages: Sequence[Mapping[str, Any]], template: ChatTemplate, tokenizer: Tokenizer, frame: Frame, length: int
) -> Dialogue | None:
    """Each answer follows the prompt the server would have made of what came before it."""
    tokens: list[int] = []
    answers: list[tuple[int, int]] = []
    for index, message in enumerate(messages):
        content = message.get("content")
        if message.get("role") != "assistant" or not isinstance(content, str) or not content or not index:
            continue
        prompt = template.encode(messages[:index])
        if prompt[: len(tokens)] != tokens:  # a template that changes what was said, as some do with reasoning
            tokens, answers = [], []
        start = len(prompt)
        tokens = [*prompt, *tokenizer.encode(content), frame.again[0]]
        answers.append((start, len(tokens)))
    kept = tuple((start, min(end, length)) for start, end in answers if start < length)
    return Dialogue(tuple(tokens[:length]), kept) if kept else None
