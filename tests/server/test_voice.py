from __future__ import annotations

import pytest

from paceline.engine.errors import RequestError
from paceline.server.fields import Fields
from paceline.server.parameters import Limits, Parameters
from paceline.server.session_request import read_settings
from paceline.server.voice import NO_VOICE, Voice, read_voice


def test_flags_change_one_by_one() -> None:
    """A response starts from its session's; what is not known is ignored."""
    session = read_voice(Fields({"voice": {"clauses": True, "pace": True, "breath": 5}}, "session"), NO_VOICE)
    assert session == Voice(clauses=True, pace=True)
    assert read_voice(Fields({"voice": {"pace": False, "timestamps": True, "clauses": None}}), session) == Voice(
        clauses=True, timestamps=True
    )
    assert read_voice(Fields({}), session) == session


@pytest.mark.parametrize("key", ["clauses", "pace", "timestamps"])
def test_a_flag_is_true_or_false(key: str) -> None:
    with pytest.raises(RequestError, match=rf"^response\.voice\.{key} must be true or false") as caught:
        read_voice(Fields({"voice": {key: 1}}, "response"), NO_VOICE)
    assert caught.value.param == f"response.voice.{key}"


def test_a_setting_among_others() -> None:
    limits = Limits(vocab_size=100, speculators=("auto", "none"))
    read = read_settings(Fields({"voice": {"pace": True}, "seed": 3}, "session"), limits, Parameters())
    assert (read.voice, read.seed) == (Voice(pace=True), 3)
