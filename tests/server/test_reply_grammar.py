"""Grammars of whole replies: what they let through, each family reads as the call it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from templates import TEMPLATES
from vocabularies import byte_level_metadata, text_assets

from paceline.engine.errors import RequestError
from paceline.server.chat_template import ChatTemplate
from paceline.server.fields import JsonObject
from paceline.server.grammars import Grammars
from paceline.server.parameters import Parameters
from paceline.server.reply_format import ReplyFormat
from paceline.server.reply_grammar import lark_of_reply
from paceline.server.reply_parts import CallArguments, CallBegin, Thought, joined
from paceline.server.reply_reader import readers
from paceline.server.tokenizer import Tokenizer
from paceline.server.tool_use import Tool, ToolUse


def _tokenizer() -> Tokenizer:
    backend = Tokenizer.from_assets(text_assets(byte_level_metadata()))._backend
    backend.add_special_tokens(["[TOOL_CALLS]", "<|python_tag|>"])
    return Tokenizer.from_assets(text_assets(tokenizer_json=backend.to_str()))


def _newer() -> Tokenizer:
    backend = _tokenizer()._backend
    backend.add_special_tokens(["[ARGS]", "<think>", "</think>"])
    return Tokenizer.from_assets(text_assets(tokenizer_json=backend.to_str()))


def _with_end(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.eos_ids = (2,)
    return tokenizer


TOKENIZER, NEWER = _with_end(_tokenizer()), _with_end(_newer())
GRAMMARS = {id(tokenizer): Grammars(tokenizer, tokenizer.vocab_size) for tokenizer in (TOKENIZER, NEWER)}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["city", "n"],
    "additionalProperties": False,
}
WEATHER, TIME = Tool(name="weather", schema=SCHEMA), Tool(name="time")
FORCED = ToolUse(tools=(WEATHER, TIME), choice="required")
NAMED = ToolUse(tools=(WEATHER, TIME), choice="named", only="time")
STRICT = ToolUse(tools=(Tool(name="weather", schema=SCHEMA, strict=True), TIME))


class Model:
    """A template and a tokenizer, and what replies to a request may be."""

    def __init__(self, template: str, tokenizer: Tokenizer = TOKENIZER) -> None:
        self.template = ChatTemplate(TEMPLATES[template], "<|endoftext|>", "<|im_end|>", tokenizer)
        self.tokenizer = tokenizer

    def fits(self, parameters: Parameters, reply: str, *, opened: bool = False) -> bool:
        """Whether the whole reply, marks that are special tokens by their names, may come, and end there."""
        wanted = lark_of_reply(self.template, parameters, opened=opened)
        assert wanted is not None
        matcher = GRAMMARS[id(self.tokenizer)].compile(wanted.lark(), wanted.param).matcher()
        ids = self.ids(reply)
        return matcher.fits([*ids, 2]) == len(ids) + 1

    def ids(self, reply: str) -> list[int]:
        return self.tokenizer.encode_rendered(reply)

    def read(self, use: ToolUse, reply: str, *, opened: bool = False) -> list[tuple[str, str]]:
        template = self.template
        reader = readers(template.tags, template.tool_format, use, prompt=[], opened=opened)(0)
        parts = reader.push(self.tokenizer.decoder(template.shown.characters).push(self.ids(reply)))
        told = joined([*parts, *reader.close()])
        assert all(isinstance(part, CallBegin | CallArguments | Thought) for part in told)
        names = [part.name for part in told if isinstance(part, CallBegin)]
        return list(zip(names, [part.text for part in told if isinstance(part, CallArguments)], strict=True))


ARGUMENTS = '{"city": "Brno", "n": 3}'
CODER = (
    "<tool_call>\n<function=weather>\n<parameter=city>\nBrno\n</parameter>\n<parameter=n>\n{}\n</parameter>\n"
    "</function>\n</tool_call>"
)
ONE_WEATHER, ONE_TIME = ("weather", ARGUMENTS), ("time", "{}")

# template, tokenizer, a call of each tool (@ and $ in what follows), both together, and one that the schema forbids
FAMILIES: dict[str, tuple[str, Tokenizer, str, str, str, str]] = {
    "hermes": (
        "qwen3",
        TOKENIZER,
        f'<tool_call>\n{{"name": "weather", "arguments": {ARGUMENTS}}}\n</tool_call>',
        '<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call>',
        "@\n$",
        '<tool_call>\n{"name": "weather", "arguments": {"city": 3}}\n</tool_call>',
    ),
    "llama": (
        "llama3",
        TOKENIZER,
        f'{{"name": "weather", "parameters": {ARGUMENTS}}}',
        '{"name": "time", "parameters": {}}',
        "@; $",
        '{"name": "weather", "parameters": {"city": 3}}',
    ),
    "mistral": (
        "mistral_tools",
        TOKENIZER,
        f'[TOOL_CALLS] [{{"name": "weather", "arguments": {ARGUMENTS}}}]',
        '[TOOL_CALLS][{"name": "time", "arguments": {}}]',
        f'[TOOL_CALLS][{{"name": "weather", "arguments": {ARGUMENTS}}}, {{"name": "time", "arguments": {{}}}}]',
        '[TOOL_CALLS] [{"name": "weather", "arguments": {"city": 3}}]',
    ),
    "mistral newer": (
        "mistral_tools",
        NEWER,
        f"[TOOL_CALLS]weather[ARGS]{ARGUMENTS}",
        "[TOOL_CALLS]time[ARGS]{}",
        "@$",
        '[TOOL_CALLS]weather[ARGS]{"city": 3}',
    ),
    "coder": (
        "qwen3_coder",
        TOKENIZER,
        CODER.format("3"),
        "<tool_call>\n<function=time>\n</function>\n</tool_call>",
        "@\n$",
        CODER.format("x"),
    ),
}


def family(name: str) -> tuple[Model, str, str, str, str]:
    template, tokenizer, weather, time, both, wrong = FAMILIES[name]
    return Model(template, tokenizer), weather, time, both.replace("@", weather).replace("$", time), wrong


def asking(use: ToolUse, **fields: Any) -> Parameters:
    return Parameters(tools=use, **fields)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_call_that_must_come(name: str) -> None:
    model, weather, time, both, wrong = family(name)
    calls: Sequence[tuple[str, list[tuple[str, str]]]] = (
        (weather, [ONE_WEATHER]),
        (time, [ONE_TIME]),
        (both, [ONE_WEATHER, ONE_TIME]),
    )
    for reply, expected in calls:
        assert model.fits(asking(FORCED), reply)
        assert model.read(FORCED, reply) == expected
    for reply in ("", "No.", weather + " And", weather[:-1], wrong, weather.replace("weather", "other")):
        assert not model.fits(asking(FORCED), reply)
    alone = ToolUse(tools=FORCED.tools, choice="required", parallel=False)
    assert model.fits(asking(alone), weather)
    assert not model.fits(asking(alone), both)
    assert model.fits(asking(NAMED), time)
    assert not model.fits(asking(NAMED), weather)


@pytest.mark.parametrize("name", ["hermes", "mistral", "mistral newer", "coder"])
def test_strict_tools_hold_a_call_that_the_model_begins(name: str) -> None:
    model, weather, time, both, wrong = family(name)
    for reply in ("", "No call.", f"Let me see.{weather}", f"{both} Done.", time, "a <tool_cal b [TOOL_"):
        assert model.fits(asking(STRICT), reply)
    assert not model.fits(asking(STRICT), f"Hm. {wrong}")
    assert lark_of_reply(model.template, asking(ToolUse(tools=STRICT.tools, choice="none")), opened=False) is None
    assert lark_of_reply(model.template, asking(ToolUse(tools=(TIME,))), opened=False) is None


@pytest.mark.parametrize("name", ["hermes", "mistral", "mistral newer", "coder"])
def test_tools_of_which_nothing_is_said_may_be_strict(name: str) -> None:
    model, weather, _, _, wrong = family(name)
    unsaid = ToolUse(tools=(Tool(name="weather", schema=SCHEMA), TIME), strict_unless_said=True)
    assert model.fits(asking(unsaid), f"Let me see.{weather}")
    assert not model.fits(asking(unsaid), f"Hm. {wrong}")
    wanted = lark_of_reply(model.template, asking(unsaid), opened=False)
    strict = lark_of_reply(model.template, asking(STRICT), opened=False)
    assert wanted is not None
    assert strict is not None
    assert (wanted.needed, strict.needed) == (False, True)
    said = ToolUse(tools=(Tool(name="weather", schema=SCHEMA, strict=False),), strict_unless_said=True)
    assert lark_of_reply(model.template, asking(said), opened=False) is None


def test_a_thought_may_come_before_a_call_and_before_a_form() -> None:
    weather, time = FAMILIES["hermes"][2:4]
    form = asking(ToolUse(), format=ReplyFormat("json_object"))
    for tokenizer in (TOKENIZER, NEWER):
        model = Model("qwen3", tokenizer)
        for parameters, reply in ((asking(FORCED), weather), (form, '{"a": 1}')):
            assert model.fits(parameters, reply)
            assert model.fits(parameters, f"<think>\nHm, {time}?\n</think>\n\n{reply}")
            assert not model.fits(parameters, f"<think>\nHm.\n</think>\n\nSo {reply}")
            assert model.fits(parameters, f"Hm.\n</think>\n\n{reply}", opened=True)
            assert not model.fits(parameters, reply, opened=True)
        assert model.read(FORCED, f"<think>Hm.</think>\n{weather}") == [ONE_WEATHER]
        assert model.fits(asking(STRICT), f"Hm.\n</think>\nSo {weather}", opened=True)
    assert not Model("smollm2").fits(asking(FORCED), f"<think>Hm.</think>{weather}")


def test_a_call_goes_before_a_form_and_a_form_before_strict_schemas() -> None:
    model, form = Model("smollm2"), ReplyFormat("regex", "[ab]+")
    assert model.fits(asking(FORCED, format=form), FAMILIES["hermes"][3])
    assert model.fits(asking(STRICT, format=form), "abba")
    assert not model.fits(asking(STRICT, format=form), "c")


def test_a_form_in_any_notation_may_stand_behind_a_thought() -> None:
    model = Model("deepseek")
    for form, reply in (
        (ReplyFormat("regex", "[{}]{2}/"), "}{/"),
        (ReplyFormat("grammar", 'start: "}" x\nx: /[}"]/ // }'), '}"'),
    ):
        assert model.fits(Parameters(format=form), f"hm</think>{reply}", opened=True)


@pytest.mark.parametrize("template", ["qwen3", "qwen3_coder", "llama3"])
@pytest.mark.parametrize("wanted", [{"type": "sock"}, {"$ref": "#/nowhere"}])
def test_schemas_that_cannot_be_followed_name_the_tools(template: str, wanted: JsonObject) -> None:
    schema = {"type": "object", "properties": {"a": wanted}}
    use = ToolUse(tools=(Tool(name="f", schema=schema, strict=True),), choice="required")
    with pytest.raises(RequestError) as caught:
        Model(template).fits(asking(use), "")
    assert (caught.value.param, caught.value.code) == ("tools", "invalid_grammar")


def _coder(wanted: JsonObject, *, strict: bool) -> tuple[Model, Parameters, str]:
    schema = {"type": "object", "properties": {"unit": wanted}, "required": ["unit"]}
    use = ToolUse(tools=(Tool(name="f", schema=schema, strict=strict),), choice="required")
    call = "<tool_call>\n<function=f>\n<parameter=unit>\n{}\n</parameter>\n</function>\n</tool_call>"
    return Model("qwen3_coder"), asking(use), call


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("said", [{"enum": ["day", "two days", "true"]}, {"const": "two days"}])
def test_of_texts_that_are_written_bare_only_those_of_the_schema_may_come(said: JsonObject, strict: bool) -> None:
    model, parameters, call = _coder({"type": "string", **said}, strict=strict)
    assert model.fits(parameters, call.format("two days"))
    for other in ("two", "two days!", "", '"two days"'):
        assert not model.fits(parameters, call.format(other))
    assert model.read(parameters.tools, call.format("two days")) == [("f", '{"unit": "two days"}')]


@pytest.mark.parametrize("said", [{"pattern": "a+"}, {"maxLength": 3}, {"format": "date"}, {"enum": [3]}])
def test_what_cannot_be_asked_of_bare_texts_is_refused_for_strict_tools(said: JsonObject) -> None:
    model, parameters, call = _coder({"type": "string", **said}, strict=True)
    with pytest.raises(RequestError, match=f"^tools cannot be followed: {next(iter(said))} of 'unit' in 'f'") as caught:
        model.fits(parameters, "")
    assert (caught.value.param, caught.value.code) == ("tools", "invalid_grammar")
    model, parameters, call = _coder({"type": "string", **said}, strict=False)
    assert model.fits(parameters, call.format("anything"))


def test_an_argument_may_be_nested_however_deeply() -> None:
    deep = "[" * 5000
    call = ("weather", f'{{"city": "Brno", "n": "{deep}"}}')
    assert Model("qwen3_coder").read(FORCED, CODER.format(deep)) == [call]
