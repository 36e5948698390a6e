from __future__ import annotations

from typing import Any

import pytest

from paceline.engine.errors import RequestError
from paceline.server.fields import Fields
from paceline.server.stream_options import StreamOptions, read_stream_options


@pytest.mark.parametrize(
    ("body", "options"),
    [
        ({}, StreamOptions()),
        ({"stream": None, "stream_options": None}, StreamOptions()),
        ({"stream": True, "stream_options": {}}, StreamOptions(stream=True)),
        ({"stream_options": {"include_usage": True}}, StreamOptions(include_usage=True)),
        (
            {"stream": True, "stream_options": {"include_usage": None, "continuous_usage_stats": True, "more": 1}},
            StreamOptions(stream=True, continuous_usage=True),
        ),
    ],
)
def test_what_is_asked_for(body: dict[str, Any], options: StreamOptions) -> None:
    assert read_stream_options(Fields(body)) == options


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"stream": "yes"}, "stream"),
        ({"stream_options": True}, "stream_options"),
        ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"stream_options": {"continuous_usage_stats": "no"}}, "stream_options.continuous_usage_stats"),
    ],
)
def test_refusals_name_the_field(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError, match="must be") as caught:
        read_stream_options(Fields(body))
    assert caught.value.param == param
