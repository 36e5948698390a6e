"""Clients of chat completions that leave or never read, and a server that stops."""

from __future__ import annotations

from typing import Any

import pytest
from raw_sockets import everything, raw_request
from service import running_server, wait_for_tokens, wait_until, wait_until_idle

from paceline.server.context import Settings


@pytest.mark.parametrize("stream", [False, True])
def test_leaving_frees_the_engine(tmp_path: Any, stream: bool) -> None:
    """Long before the reply would have ended by itself; without streaming nothing was ever sent."""
    with running_server(tmp_path, context_length=4096) as live:
        connection = raw_request(live.port, stream)
        wait_for_tokens(live.service, 2)
        connection.close()
        wait_until_idle(live.service)
        assert live.service.loop.stats().generated_tokens < 3000


def test_leaving_during_a_long_prefill(tmp_path: Any) -> None:
    with running_server(tmp_path, context_length=8192, step_budget=16) as live:
        connection = raw_request(live.port, True, messages=[{"role": "user", "content": "z" * 8000}])
        wait_until(lambda: live.service.loop.stats().running == 1)
        connection.close()
        wait_until_idle(live.service)
        assert live.service.loop.stats().generated_tokens == 0


def test_a_reader_that_never_reads_is_dropped(tmp_path: Any) -> None:
    with running_server(tmp_path, Settings(client_patience_s=0.3), small_buffers=True, context_length=8192) as live:
        connection = raw_request(live.port, True, logprobs=True, top_logprobs=20)
        wait_for_tokens(live.service, 20)
        wait_until_idle(live.service)
        assert live.service.loop.stats().generated_tokens < 7000
        wait_until(lambda: live.context.drain.busy == 0)
        connection.close()


# Shutdown


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_that_outlasts_the_drain_is_told_so(
    tmp_path: Any, stream: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        running_server(tmp_path, Settings(drain_s=0.1), context_length=8192) as live,
        raw_request(live.port, stream) as connection,
    ):
        wait_for_tokens(live.service, 2)
        live.stop()
        answer = everything(connection)
        live.join()
        wait_until_idle(live.service)
    head, _, body = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200" if stream else "HTTP/1.1 503")
    assert '"code":"aborted"' in body
    assert ("data: [DONE]" in body) == stream
    assert capfd.readouterr().err == ""
