"""For models whose chat template knows no tools: the format of Hermes, explained and rendered by us."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..fields import JsonObject
from .hermes import Hermes

_EXPLANATION = """\
# Tools

You may call functions to help with what the user asks. They are described here, one JSON object a line:
<tools>
{tools}
</tools>

To call a function, write its name and arguments as JSON between these tags, and nothing else:
<tool_call>
{{"name": "function name", "arguments": {{"argument": "value"}}}}
</tool_call>"""


class Described(Hermes):
    """Tools stand in the system message, calls in the assistant's text, results in a user's turn: every template can
    render these."""

    rendered = False

    def messages(self, messages: Sequence[JsonObject], tools: Sequence[JsonObject]) -> list[JsonObject]:
        out: list[JsonObject] = []
        answered = False  # the last one in `out` holds results
        for message in messages:
            if message.get("role") == "tool":
                result = f"<tool_response>\n{_text(message)}\n</tool_response>"
                if answered:
                    out[-1]["content"] += f"\n{result}"
                else:
                    out.append({"role": "user", "content": result})
                answered = True
                continue
            answered = False
            out.append(_with_calls(message) if message.get("tool_calls") else dict(message))
        return _with_tools(out, tools) if tools else out


def _with_tools(messages: list[JsonObject], tools: Sequence[JsonObject]) -> list[JsonObject]:
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    text = _EXPLANATION.format(tools=lines)
    if messages and messages[0].get("role") == "system":
        return [{**messages[0], "content": f"{_text(messages[0])}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def _with_calls(message: JsonObject) -> JsonObject:
    blocks = [_text(message)] if _text(message) else []
    for call in message["tool_calls"]:
        function = call["function"]
        arguments = function.get("arguments")
        written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        name = json.dumps(function["name"], ensure_ascii=False)
        blocks.append(f'<tool_call>\n{{"name": {name}, "arguments": {written}}}\n</tool_call>')
    known = {key: value for key, value in message.items() if key != "tool_calls"}
    return {**known, "content": "\n".join(blocks)}


def _text(message: JsonObject) -> str:
    """The content as one text, text parts joined by newlines."""
    content = message.get("content")
    if isinstance(content, list | tuple):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")
