from __future__ import annotations

import pytest

from paceline.server.context_limit import ContextLimit


def test_a_refusal_says_whose_limit_it_is() -> None:
    own = ContextLimit(100).refusal("120 tokens", "the prompt alone is", "prompt")
    assert str(own) == (
        "This model's maximum context length is 100 tokens, and the prompt alone is 120 tokens; shorten prompt so that "
        "at least one token of reply fits."
    )
    assert (own.param, own.code) == ("prompt", "context_length_exceeded")
    assert str(ContextLimit(100, "--kv-memory").refusal("120 tokens", "it is")).startswith(
        "The maximum context length is 100 tokens, set by this server's --kv-memory, and it is 120 tokens;"
    )


@pytest.mark.parametrize(
    ("limit", "warns"), [((100, "--kv-memory"), True), ((512, "--kv-memory"), False), ((100,), False)]
)
def test_the_operator_is_warned_where_an_option_leaves_little_room(limit: tuple[int, str | None], warns: bool) -> None:
    warning = ContextLimit(*limit).warning
    assert (warning is not None) == warns
    assert warning is None or "raise --kv-memory" in warning
