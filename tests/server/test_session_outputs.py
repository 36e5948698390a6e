from __future__ import annotations

from paceline.server.session_outputs import Send, send


def test_events_become_outputs_in_their_order() -> None:
    assert send() == []
    assert send({"type": "a"}, {"type": "b"}) == [Send({"type": "a"}), Send({"type": "b"})]
