"""Chat completions through the openai SDK: a tool call, its answer, and the reply as it comes.

pip install openai
python examples/chat.py "What is the weather like in Oslo?"
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from openai import OpenAI

WEATHER = {"Oslo": "rain, 4 degrees", "Nairobi": "sun, 26 degrees", "Lima": "fog, 17 degrees"}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city at this moment.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": sorted(WEATHER)}},
            "required": ["city"],
            "additionalProperties": False,
        },
        "strict": True,  # the server holds the arguments to the schema, token by token
    },
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="One question, answered with the help of a tool.")
    parser.add_argument("question", nargs="?", default="What is the weather like in Oslo?")
    parser.add_argument("--url", default="http://127.0.0.1:8377/v1")
    parser.add_argument("--key", default="unused")
    parser.add_argument("--model", default="default")
    parser.add_argument("--max-tokens", type=int, default=120)
    given = parser.parse_args(arguments)

    with OpenAI(base_url=given.url, api_key=given.key) as client:
        asked = {"model": given.model, "tools": [TOOL], "max_completion_tokens": given.max_tokens, "temperature": 0}
        messages: list[Any] = [{"role": "user", "content": given.question}]
        # A small model seldom calls a tool by itself: `required` makes it. Larger ones can be left to `auto`.
        called = ask(client, messages, tool_choice="required", parallel_tool_calls=False, **asked)
        messages.append(called)
        for call in called["tool_calls"]:
            print(f"calls {call['function']['name']} {call['function']['arguments']}")
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": answer(call["function"])})
        ask(client, messages, tool_choice="none", **asked)


def ask(client: OpenAI, messages: list[Any], **options: Any) -> dict[str, Any]:
    """Prints the text as it arrives; returns the whole message, its calls put together from their fragments."""
    text = ""
    calls: dict[int, dict[str, Any]] = {}
    stream = client.chat.completions.create(
        messages=messages, stream=True, stream_options={"include_usage": True}, **options
    )
    for chunk in stream:
        for choice in chunk.choices:
            if choice.delta.content:
                text += choice.delta.content
                print(choice.delta.content, end="", flush=True)
            for fragment in choice.delta.tool_calls or ():
                call = calls.setdefault(
                    fragment.index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                )
                call["id"] += fragment.id or ""
                call["function"]["name"] += fragment.function.name or ""
                call["function"]["arguments"] += fragment.function.arguments or ""
            if choice.finish_reason:
                print(f"{'' if not text else chr(10)}[{choice.finish_reason}]", end=" ")
        if chunk.usage:
            print(f"{chunk.usage.prompt_tokens} tokens read, {chunk.usage.completion_tokens} written")
    return {"role": "assistant", "content": text or None, "tool_calls": [calls[index] for index in sorted(calls)]}


def answer(function: dict[str, str]) -> str:
    """What the tool says. The model wrote the arguments: that they are whole and right is checked."""
    try:
        city = json.loads(function["arguments"])["city"]
        return WEATHER[city]
    except (ValueError, KeyError, TypeError):
        return f"There is no weather for {function['arguments']}; the cities are {', '.join(sorted(WEATHER))}."


if __name__ == "__main__":
    main()
