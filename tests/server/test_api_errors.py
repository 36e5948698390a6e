from __future__ import annotations

import orjson
import pytest
from starlette.exceptions import HTTPException

from paceline.engine.errors import OverloadedError, RequestError
from paceline.server.api_errors import ApiError, as_api_error, not_supported


@pytest.mark.parametrize(
    ("error", "status", "kind", "code"),
    [
        (RequestError("n is odd.", param="n", code="odd"), 400, "invalid_request_error", "odd"),
        (OverloadedError("Full; wait."), 429, "rate_limit_error", "overloaded"),
        (HTTPException(404), 404, "invalid_request_error", None),
        (HTTPException(405, headers={"Allow": "POST"}), 405, "invalid_request_error", None),
        (not_supported("tools", "Tool calling"), 400, "invalid_request_error", "unsupported"),
        (ValueError("a secret path"), 500, "server_error", "internal_error"),
    ],
)
def test_every_error_has_the_one_shape(error: Exception, status: int, kind: str, code: str | None) -> None:
    response = as_api_error(error).response()
    body = orjson.loads(response.body)
    assert response.status_code == status
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert (body["error"]["type"], body["error"]["code"]) == (kind, code)
    assert body["error"]["message"].endswith(".")


def test_a_bug_shows_none_of_its_details() -> None:
    assert "secret" not in str(as_api_error(ValueError("a secret path")))


def test_when_to_come_back() -> None:
    assert ApiError(429, "Full.").response().headers["retry-after"] == "1"
    assert ApiError(503, "Later.", headers={"retry-after": "9"}).response().headers["retry-after"] == "9"
    assert "retry-after" not in ApiError(400, "No.").response().headers


def test_a_wrong_method_is_told_the_right_one() -> None:
    error = as_api_error(HTTPException(405, headers={"Allow": "POST"}))
    assert "use POST" in str(error)
    assert error.response().headers["allow"] == "POST"
