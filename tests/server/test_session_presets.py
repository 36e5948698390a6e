from __future__ import annotations

import pytest
from realtime_session import Driver

from paceline.server.api_errors import ApiError
from paceline.server.service import Service
from paceline.server.session_presets import checked, preset


def test_a_session_starts_with_them() -> None:
    driver = Driver()
    assert preset(driver.session, {"instructions": "Be brief.", "temperature": 0})["type"] == "session.updated"
    (created,) = driver.take(driver.session.open())
    assert (created["session"]["instructions"], created["session"]["temperature"]) == ("Be brief.", 0)


def test_they_are_tried_before_they_are_kept(service: Service) -> None:
    shown = checked(service, {"max_output_tokens": 7})
    assert (shown["type"], shown["max_output_tokens"]) == ("realtime", 7)
    with pytest.raises(ApiError, match="session\\.max_output_tokens") as caught:
        checked(service, {"max_output_tokens": 0})
    assert (caught.value.status, caught.value.param) == (400, "session.max_output_tokens")
