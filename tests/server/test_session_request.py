from __future__ import annotations

from typing import Any

import pytest

from paceline.engine.errors import RequestError
from paceline.server.api_errors import ApiError
from paceline.server.fields import Fields
from paceline.server.parameters import Limits, Parameters
from paceline.server.session_request import read_metadata, read_settings, unknown_event
from paceline.server.tool_use import NO_TOOLS

LIMITS = Limits(vocab_size=100, speculators=("auto", "none"))


def read(**values: Any) -> Parameters:
    return read_settings(Fields(values, "session"), LIMITS, Parameters(max_tokens=9))


def test_settings_and_extensions() -> None:
    settings = read(
        output_modalities=["text"], max_output_tokens=5, temperature=0, seed=3, speculation={"mode": "none"}
    )
    assert (settings.max_tokens, settings.sampling.temperature, settings.seed) == (5, 0.0, 3)
    assert settings.speculation.mode == "none"
    assert read(max_output_tokens="inf").max_tokens is None
    assert read(max_output_tokens=None).max_tokens == 9


def test_tools_and_thinking() -> None:
    tool = {"type": "function", "name": "f", "description": "It does.", "parameters": {"type": "object"}}
    settings = read(tools=[tool], tool_choice={"type": "function", "name": "f"}, reasoning={"effort": "low"})
    assert [known.name for known in settings.tools.tools] == ["f"]
    assert (settings.tools.choice, settings.tools.only) == ("named", "f")
    assert settings.thinking.effort == "low"
    assert read(tools=[]).tools == NO_TOOLS


def test_names_of_the_beta() -> None:
    assert read(modalities=["text"], max_response_output_tokens=5).max_tokens == 5
    assert read(max_response_output_tokens="inf").max_tokens is None


def test_what_says_nothing_about_text_is_ignored() -> None:
    """As the stock SDK's types have it."""
    ignored = {
        "truncation": {"type": "retention_ratio", "retention_ratio": 0.8},
        "tracing": "auto",
        "include": ["item.input_audio_transcription.logprobs"],
        "prompt": None,
        "turn_detection": None,
        "x_unknown": 1,
    }
    assert read(**ignored) == Parameters(max_tokens=9)


@pytest.mark.parametrize("limit", [0, -1, "many", 1.5, True, []])
def test_bad_token_limits(limit: Any) -> None:
    with pytest.raises(RequestError, match=r"^session\.max_output_tokens must be a positive integer or"):
        read(max_output_tokens=limit)


@pytest.mark.parametrize(
    "values",
    [
        {"output_modalities": ["audio"]},
        {"modalities": ["text", "audio"]},
        {"output_modalities": []},
        {"audio": {"output": {"voice": "alloy"}}},
        {"voice": "alloy"},
        {"turn_detection": {"type": "server_vad"}},
        {"input_audio_transcription": {}},
        {"tools": [{"type": "mcp", "server_label": "x"}]},
    ],
)
def test_what_cannot_be_honoured_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        read(**values)
    assert caught.value.code == "unsupported"


def test_metadata_comes_back_within_bounds() -> None:
    assert read_metadata(Fields({"metadata": {"a": "b"}})) == {"a": "b"}
    assert read_metadata(Fields({})) is None
    for bad in ({"a": 1}, {"a" * 65: "b"}, {"a": "b" * 513}, {str(i): "" for i in range(17)}):
        with pytest.raises(RequestError, match="metadata may hold"):
            read_metadata(Fields({"metadata": bad}))


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("input_audio_buffer.append", "unsupported"),
        ("output_audio_buffer.clear", "unsupported"),
        ("transcription_session.close", "unsupported"),
        ("response.explode", "unknown_event"),
        ("", "unknown_event"),
    ],
)
def test_events_without_a_handler(kind: str, code: str) -> None:
    error = unknown_event(kind, ["session.update"])
    assert error.code == code
    assert ("session.update" in str(error)) == (code == "unknown_event")
