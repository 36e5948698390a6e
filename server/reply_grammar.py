"""The grammar of a whole reply: its thought, then calls that must come, or the form that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from .reply_format import FREE_TEXT, lark_of
from .tool_formats import lark

if TYPE_CHECKING:
    from .chat_template import ChatTemplate
    from .parameters import Parameters
    from .text_decoder import Shown
    from .thinking import Tags
    from .tool_formats import ToolFormat
    from .tool_use import ToolUse


class ReplyGrammar(NamedTuple):
    """param: the field it follows from. needed: where it cannot be followed the request is refused; else the reply may
    be anything, as nobody asked for it by name."""

    lark: Callable[[], str]
    param: str
    needed: bool = True


def lark_of_reply(template: ChatTemplate, parameters: Parameters, *, opened: bool) -> ReplyGrammar | None:
    """None for a reply that may be anything.

    opened: the prompt ends inside a thought. A call that must come goes before a form that was asked for, and the form
    before the schemas of strict tools. Thoughts are free in any case.
    """
    use, form, format_ = parameters.tools, parameters.format, template.tool_format
    if use.forced:
        return ReplyGrammar(lambda: _forced(format_, use, _before(template.tags, template.shown, opened)), "tools")
    if form.kind != FREE_TEXT.kind:
        if template.tags is None:
            return ReplyGrammar(lambda: lark_of(form), form.param)
        return ReplyGrammar(lambda: _formed(lark_of(form), _before(template.tags, template.shown, opened)), form.param)
    if use.held and not format_.bare:
        return ReplyGrammar(
            lambda: _strict(format_, use, _before(template.tags, template.shown, True) if opened else ""),
            "tools",
            needed=any(tool.strict for tool in use.offered),
        )
    return None


def _before(tags: Tags | None, shown: Shown, opened: bool) -> str:
    """The rule `before`: the thought a reply begins with, if the model thinks."""
    if tags is None:
        return 'before: ""'
    begin = "thought space" if opened else f"({lark.mark(tags.open, shown)} thought space)?"
    return "\n".join([f"before: {begin}", lark.up_to("thought", tags.close, shown), "space: /[ \\n]{0,4}/"])


def _forced(format_: ToolFormat, use: ToolUse, before: str) -> str:
    mark = "" if format_.bare else lark.mark(format_.marker, format_.shown)
    more = f" ({format_.between} {mark} block)*" if use.parallel and format_.several else ""
    return "\n".join([f"start: before {mark} block{more}", before, *_block(format_, use)])


def _strict(format_: ToolFormat, use: ToolUse, before: str) -> str:
    start = "start: before (free block)* rest" if before else "start: (free block)* rest"
    free = lark.up_to("free", format_.marker, format_.shown)
    return "\n".join([start, before, free, "rest: /(.|\\n)*/", *_block(format_, use)])


def _block(format_: ToolFormat, use: ToolUse) -> list[str]:
    names = [f"call_{i}" for i in range(len(use.callable))]
    calls = [rule for tool, name in zip(use.callable, names, strict=True) for rule in format_.rules(tool, name)]
    return [f"block: {format_.block(parallel=use.parallel)}", f"call: {' | '.join(names)}", *calls]


def _formed(form: str, before: str) -> str:
    return "\n".join(["start: before form", before, f"form: %lark {{\n{form}\n}}"])
