from __future__ import annotations

import pytest
from realtime_session import Driver

from paceline.engine.errors import RequestError
from paceline.server.service import Service
from paceline.server.session_presets import checked


def test_a_session_starts_with_them() -> None:
    driver = Driver()
    driver.session.preset({"instructions": "Be brief.", "temperature": 0})
    (created,) = driver.take(driver.session.open())
    assert (created["session"]["instructions"], created["session"]["temperature"]) == ("Be brief.", 0)


def test_what_they_say_is_computed_ahead() -> None:
    driver = Driver()
    driver.session.preset({"instructions": "Be brief."})
    assert driver.warms == []
    driver.take(driver.session.open())
    assert [warm.messages for warm in driver.warms] == [[{"role": "system", "content": "Be brief."}]]


def test_they_are_tried_before_they_are_kept(service: Service) -> None:
    shown = checked(service, {"max_output_tokens": 7})
    assert (shown["type"], shown["max_output_tokens"]) == ("realtime", 7)
    with pytest.raises(RequestError, match="session\\.max_output_tokens") as caught:
        checked(service, {"max_output_tokens": 0})
    assert caught.value.param == "session.max_output_tokens"
