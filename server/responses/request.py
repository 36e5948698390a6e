"""The body of POST /v1/responses, which is what a `response.create` event holds too: checked field by field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..api_errors import not_supported
from ..fields import Fields, JsonObject
from ..parameters import Limits, Parameters, read_parameters
from ..reply_format import read_format
from ..session_request import read_metadata
from ..tool_use import ToolUse
from .items import Item, read_input

LOGPROBS = "message.output_text.logprobs"  # in `include`


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRequest:
    """items: what this request adds to the conversation. echo: the fields of the response that repeat the request."""

    model: str | None
    items: tuple[Item, ...]
    instructions: str
    previous_response_id: str | None
    store: bool
    stream: bool
    generate: bool  # False: only prepare what the next response will begin with
    truncate: bool  # drop the oldest turns where the conversation is too long
    parameters: Parameters
    echo: JsonObject

    def following(self, response_id: str, items: tuple[Item, ...]) -> ResponseRequest:
        """The same settings for what goes on from a response with `items`."""
        echo = self.echo | {"previous_response_id": response_id}
        return replace(self, previous_response_id=response_id, items=items, echo=echo)


def read_request(
    fields: Fields, limits: Limits, base: Parameters, *, find: Callable[[str], Item | None], max_items: int
) -> ResponseRequest:
    """find: the item that an `item_reference` names. Raises RequestError or ApiError, naming the field."""
    _refuse_unsupported(fields)
    parameters = _read_parameters(fields, limits, base)
    items = tuple(read_input(fields, find, max_items))
    previous = fields.string("previous_response_id")
    instructions = fields.string("instructions")
    if not items and not instructions and previous is None:
        fields.refuse("input", "is missing; send a string or a list of items.")
    generate = fields.boolean("generate")
    options = fields.child("prompt_cache_options") or Fields({}, "prompt_cache_options")
    store = fields.boolean("store")
    truncation = fields.choice("truncation", ("auto", "disabled")) or "disabled"
    sampling, text = parameters.sampling, fields.child("text")
    return ResponseRequest(
        model=fields.string("model"),
        items=items,
        instructions=instructions or "",
        previous_response_id=previous,
        store=store is not False,
        stream=fields.boolean("stream") or False,
        generate=generate is not False and not options.boolean("prewarm"),
        truncate=truncation == "auto",
        parameters=parameters,
        echo={
            "background": False,
            "instructions": instructions,
            "max_output_tokens": parameters.max_tokens,
            "max_tool_calls": fields.integer("max_tool_calls", low=1),
            "metadata": read_metadata(fields) or {},
            "parallel_tool_calls": parameters.tools.parallel,
            "previous_response_id": previous,
            "prompt_cache_key": fields.string("prompt_cache_key"),
            "reasoning": {"effort": parameters.thinking.effort, "summary": None},
            "safety_identifier": fields.string("safety_identifier"),
            "service_tier": "default",
            "store": store is not False,
            "temperature": sampling.temperature,
            "text": _text_body(text),
            "tool_choice": parameters.tools.flat_choice(),
            "tools": _tool_bodies(parameters.tools),
            "top_logprobs": sampling.logprobs or 0,
            "top_p": sampling.top_p,
            "truncation": truncation,
            "user": fields.string("user"),
        },
    )


def _refuse_unsupported(fields: Fields) -> None:
    """What would change the reply and cannot be honoured is refused, never quietly dropped."""
    if fields.boolean("background"):
        raise not_supported("background", "A response in the background")
    if fields.has("conversation"):
        raise not_supported("conversation", "A conversation object (previous_response_id does what it is for)")
    if fields.has("prompt"):
        raise not_supported("prompt", "A stored prompt")


def _read_parameters(fields: Fields, limits: Limits, base: Parameters) -> Parameters:
    """Tokens are counted as `max_output_tokens`; logprobs are asked for by `include`, or by how many there shall be.
    Tools are strict here unless they say that they are not, as in OpenAI's interface."""
    top = fields.integer("top_logprobs")
    wanted = bool(top) or LOGPROBS in (fields.array("include") or [])
    shared = Fields({**fields.values, "logprobs": wanted, "top_logprobs": top or 0}, fields.path)
    tools = replace(base.tools, strict_unless_said=True)
    parameters = read_parameters(shared, limits, replace(base, tools=tools))
    text = fields.child("text")
    form = None if text is None else text.child("format")
    return replace(
        parameters,
        max_tokens=fields.integer("max_output_tokens", low=1),
        format=parameters.format if form is None else read_format(form),
    )


def _tool_bodies(tools: ToolUse) -> list[JsonObject]:
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.schema,
            "strict": tool.strict,
        }
        for tool in tools.tools
    ]


def _text_body(text: Fields | None) -> JsonObject:
    given = {} if text is None else {key: value for key, value in text.values.items() if value is not None}
    return {"format": {"type": "text"}, **given}
