from __future__ import annotations

from paceline.server.conversation import Conversation
from paceline.server.items import Message
from paceline.server.parameters import Limits, Parameters
from paceline.server.session_state import SessionState
from paceline.server.tool_use import Tool, ToolUse
from paceline.server.voice import Voice


def state() -> SessionState:
    return SessionState(
        id="sess_1",
        conversation_id="conv_1",
        model="tiny",
        limits=Limits(vocab_size=100, speculators=("auto",), max_nodes=16),
        conversation=Conversation(max_items=10, max_chars=1000),
        new_id=lambda prefix: prefix,
    )


def test_the_messages_of_a_prompt() -> None:
    s = state()
    assert s.messages() == []
    s.instructions = "Be kind."
    s.conversation.add(Message(id="a", role="user", text="hi"))
    assert s.messages() == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]
    assert s.messages("", [Message(id="b", role="user", text="other")]) == [{"role": "user", "content": "other"}]
    assert s.messages("Be brief.", []) == [{"role": "system", "content": "Be brief."}]


def test_a_session_is_interactive_unless_it_says_otherwise() -> None:
    assert state().body()["priority"] == "interactive"


def test_tools_are_shown_in_the_flat_spelling() -> None:
    s = state()
    assert (s.body()["tools"], s.body()["tool_choice"]) == ([], "auto")
    tool = Tool(name="f", description="It does.", schema={"type": "object"})
    s.parameters = Parameters(tools=ToolUse(tools=(tool,), choice="named", only="f", parallel=False))
    body = s.body()
    assert body["tools"] == [
        {"type": "function", "name": "f", "description": "It does.", "parameters": {"type": "object"}}
    ]
    assert body["tool_choice"] == {"type": "function", "name": "f"}
    assert body["parallel_tool_calls"] is False


def test_what_a_voice_loop_asked_for_is_shown() -> None:
    s = state()
    s.parameters = Parameters(voice=Voice(clauses=True))
    assert s.body()["voice"] == {"clauses": True, "pace": False, "timestamps": False}
