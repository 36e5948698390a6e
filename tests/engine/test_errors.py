"""Errors for people: one family, and a refused request says which field is to blame."""

from __future__ import annotations

import pytest

from paceline.engine.errors import ConfigError, ModelError, OverloadedError, PacelineError, RequestError


@pytest.mark.parametrize("kind", [ModelError, ConfigError, RequestError, OverloadedError])
def test_every_error_is_of_the_family_and_is_its_message(kind: type[PacelineError]) -> None:
    error = kind("What is wrong; what to do.")
    assert isinstance(error, PacelineError)
    assert str(error) == "What is wrong; what to do."


def test_a_request_error_carries_its_field_and_its_code() -> None:
    error = RequestError("Too long.", param="messages", code="context_length_exceeded")
    assert (error.param, error.code) == ("messages", "context_length_exceeded")
    plain = RequestError("Something else.")
    assert (plain.param, plain.code) == (None, None)
