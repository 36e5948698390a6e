"""Messages to prompt tokens by the model's own chat template, in a sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jinja2

from paceline.engine.errors import ModelError, RequestError

from .fields import JsonObject
from .template_environment import TemplateRefusalError, make_environment
from .template_guard import TemplateGuard
from .text_decoder import Shown
from .thinking import MODELS_OWN, Thinking, tags_of
from .tool_formats import tool_format_of

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

_CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_REASONING = ("reasoning_content", "thinking", "reasoning")  # the names templates and clients know it by


class ChatTemplate:
    """A compiled chat template with the functions, filters and white-space rules templates are written for.

    Rendered text is encoded in one go with its control tokens, as written, and without a BOS of our own. What people
    type never becomes a control token: where a special token's name occurs in their strings, or could be completed by
    the text after them, a guard character breaks it up until the control tokens have been found.
    """

    def __init__(self, source: str | None, bos_token: str | None, eos_token: str | None, tokenizer: Tokenizer) -> None:
        """Without a template the ChatML format is used if the vocabulary has its control tokens.

        Raises ModelError for a template with a syntax error, and when there is neither.
        """
        if not source:
            if not {"<|im_start|>", "<|im_end|>"} <= tokenizer.special_tokens.keys():
                raise ModelError(
                    "The model has no chat template; use a chat model, or add a chat_template to its "
                    "tokenizer_config.json."
                )
            source = _CHATML
        self._tokenizer = tokenizer
        self._variables = {
            name: token for name, token in (("bos_token", bos_token), ("eos_token", eos_token)) if token is not None
        }
        self._guard = TemplateGuard(tokenizer.special_tokens)
        self.shown = Shown(tokenizer.special_tokens)  # marks that are special tokens
        self.tool_format = tool_format_of(source, self.shown)
        self.tags = tags_of(source, self.shown)
        try:
            self._template = make_environment().from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise ModelError(
                f"The model's chat template has an error in line {error.lineno}: {error.message}; "
                "fix it, or fetch the model again."
            ) from error

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[JsonObject] = (),
        thinking: Thinking = MODELS_OWN,
    ) -> list[int]:
        """The prompt's token ids, with the opening of the reply. tools: as `Tool.body` gives them.

        Raises RequestError (param "messages") for messages the template refuses, with its own words, or cannot render.
        """
        text, guard = self.prepare(messages, tools, thinking)
        return self._tokenizer.encode_rendered(text, guard=guard)

    def prepare(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[JsonObject] = (),
        thinking: Thinking = MODELS_OWN,
        *,
        opening: bool = True,
    ) -> tuple[str, str | None]:
        """The text and the guard character for `Tokenizer.encode_rendered`; raises as `encode` does. opening: of the
        reply, at the end."""
        if not messages:
            raise RequestError("messages is empty; send at least one message.", param="messages")
        guard = self._guard.guard_for([messages, tools])
        return self._render(messages, tools, thinking, guard, opening), guard

    def opens_thought(self, text: str) -> bool:
        """True when the rendered `text` ends with the tag that opens a thought: the reply goes on inside it."""
        return self.tags is not None and text.rstrip().endswith(self.tags.name)

    def _render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[JsonObject],
        thinking: Thinking,
        guard: str | None,
        opening: bool,
    ) -> str:
        try:
            turns = self.tool_format.messages([_message(message) for message in messages], tools)
            described = list(tools) if tools and self.tool_format.rendered else None
            values = {
                **self._variables,
                **thinking.variables(),
                "messages": self._guard.plain(turns, guard),
                "tools": self._guard.plain(described, guard),
                "documents": None,
                "add_generation_prompt": opening,
            }
            return self._template.render(values)
        except TemplateRefusalError as error:
            raise RequestError(str(error).replace(guard or "\0", ""), param="messages") from error
        except Exception as error:  # a template can fail in any way Python can
            reason = f"{type(error).__name__}: {error}".replace(guard or "\0", "")
            raise RequestError(
                f"The model's chat template cannot render these messages ({reason}); check their roles and contents.",
                param="messages",
            ) from error


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as templates expect it: no nulls, text parts joined by newlines, reasoning under each of its names."""
    known = {key: value for key, value in message.items() if value is not None}
    content = known.get("content")
    if isinstance(content, list | tuple) and all(
        isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)
        for part in content
    ):
        known["content"] = "\n".join(part["text"] for part in content)
    reasoning = next((known[name] for name in _REASONING if name in known), None)
    if reasoning is not None:
        known = {"thinking": reasoning, **known, "reasoning_content": reasoning}
    return known
