from __future__ import annotations

import io
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from service import MODEL_ID, LiveServer, live_server, running_service, wait_until, wait_until_idle

from paceline.engine.engine import Post
from paceline.server.address import AddressError
from paceline.server.chat_client import ChatError, ConnectionLostError, Conversation, ReplyFigures, chat
from paceline.server.context import Settings
from paceline.server.service import Service


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running_service(tmp_path_factory.mktemp("chat"), context_length=2048) as service:
        yield service


@pytest.fixture
def server(service: Service) -> Iterator[LiveServer]:
    with live_server(service) as server:
        yield server


def test_a_reply_streams_and_is_measured(server: LiveServer) -> None:
    pieces: list[str] = []
    with Conversation(server.url, temperature=0.0, instructions="Be short.", max_tokens=12) as talk:
        figures = talk.say("hello", pieces.append)
        again = talk.say("and now", lambda text: None)
    assert figures.status in ("completed", "incomplete")
    assert 1 <= figures.tokens <= 12
    assert figures.emitted == figures.tokens
    assert figures.first_text is not None
    assert figures.last_text is not None
    assert 0 < figures.first_text <= figures.last_text
    assert "".join(pieces)
    assert again.tokens >= 1


def test_cancelling_ends_the_reply_once_and_frees_the_engine(server: LiveServer, service: Service) -> None:
    pieces: list[str] = []
    with Conversation(server.url, temperature=0.0, max_tokens=1500) as talk:  # greedy: it goes round without an end
        figures = talk.say("count", pieces.append, lambda: len(pieces) >= 3)
        assert figures.status == "cancelled"
        assert figures.tokens < 1500
        assert talk.say("go on", lambda text: None, lambda: True).status == "cancelled"
    wait_until_idle(service)


def test_figures_are_described_in_one_line() -> None:
    figures = ReplyFigures(status="cancelled", first_text=0.1, last_text=0.5, tokens=5, emitted=5, accepted=2)
    assert (
        figures.describe() == "first token 100 ms · 100.0 ms per token · 0.67 accepted per step · 5 tokens · cancelled"
    )
    assert ReplyFigures(status="completed", tokens=1).describe() == "1 token"


def test_refusals_are_told_apart(server: LiveServer, service: Service) -> None:
    with pytest.raises(ChatError, match="model 'other' is not served"):
        Conversation(server.url, model="other")
    with live_server(service, Settings(api_keys=("right",))) as guarded:
        with pytest.raises(ChatError, match=r"refuses the key \(401\)"):
            Conversation(guarded.url, api_key="wrong")
        with Conversation(guarded.url, model=MODEL_ID, api_key="right"):
            pass
    with pytest.raises(ChatError, match="temperature"):
        Conversation(server.url, temperature=-1.0)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ChatError, match="paceline serve"):
            Conversation(f"http://127.0.0.1:{unused.getsockname()[1]}")
    with pytest.raises(AddressError):
        Conversation("ftp://somewhere")


def test_something_else_that_listens_is_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            connection.recv(4096)
            connection.sendall(b"SSH-2.0-OpenSSH\r\n")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ChatError, match="No server answers"):
            Conversation(f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread.join()


def test_a_reply_over_the_context_is_one_sentence_and_the_conversation_goes_on(server: LiveServer) -> None:
    with Conversation(server.url, max_tokens=4) as talk:
        with pytest.raises(ChatError, match="maximum context length") as caught:
            talk.say("word " * 5000, lambda text: None)
        assert not isinstance(caught.value, ConnectionLostError)


def test_a_server_that_stops_is_noticed(service: Service) -> None:
    with live_server(service, Settings(drain_s=0.0)) as server, Conversation(server.url) as talk:
        server.stop()
        server.join()
        with pytest.raises(ConnectionLostError, match="closed the connection"):
            talk.say("still there?", lambda text: None)


def test_lines_of_a_pipe_become_replies(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("hello\n\n/new\nagain\n"))
    printed = io.StringIO()
    chat(lambda: Conversation(server.url, temperature=0.0, max_tokens=3), Console(file=printed, width=200))
    assert printed.getvalue().count(" tokens") + printed.getvalue().count("1 token\n") == 2


def test_a_slash_is_a_command_and_two_are_text(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    say = Conversation.say

    def listen(talk: Conversation, text: str, *rest: Any) -> ReplyFigures:
        said.append(text)
        return say(talk, text, *rest)

    monkeypatch.setattr(Conversation, "say", listen)
    monkeypatch.setattr(sys, "stdin", io.StringIO("//etc is a folder\n/ //\n"))
    with pytest.raises(ChatError) as caught:
        chat(lambda: Conversation(server.url, max_tokens=3), Console(file=io.StringIO()))
    assert str(caught.value).startswith("There is no command /; /new starts afresh, and // ")

    typed = io.StringIO("/quit now\n/new\nhello\n")
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", typed)
    chat(lambda: Conversation(server.url, max_tokens=3), Console(file=io.StringIO()))
    assert said == ["/etc is a folder", "hello"]
    assert capsys.readouterr().err.startswith("paceline: There is no command /quit; ")


def test_ctrl_c_stops_the_reply_and_ctrl_d_ends_at_a_terminal(
    server: LiveServer, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole program at a pseudo-terminal, with the keys a person presses."""
    step = service.loop.engine.step

    def slow(post: Post) -> None:  # the reply must not be over before the key is pressed
        time.sleep(0.05)
        step(post)

    monkeypatch.setattr(service.loop.engine, "step", slow)
    ours, theirs = pty.openpty()
    script = Path(sys.executable).with_name("paceline")
    environment = {**os.environ, "TERM": "dumb"}
    process = subprocess.Popen(
        [script, "chat", server.url, "--temperature", "0"], stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True, env=environment,
    )  # fmt: skip
    os.close(theirs)
    seen = b""

    def read_until(wanted: bytes) -> None:
        """Consume what was printed up to `wanted`."""
        nonlocal seen
        while wanted not in seen:
            readable, _, _ = select.select([ours], [], [], 30)
            assert readable, seen.decode(errors="replace")
            seen += os.read(ours, 4096)
        seen = seen.partition(wanted)[2]

    try:
        read_until(b"> ")
        os.write(ours, b"tell me everything\n")
        wait_until(lambda: service.loop.stats().running > 0)
        process.send_signal(signal.SIGINT)
        read_until(b"cancelled")
        read_until(b"> ")
        os.write(ours, b"\x04")
        assert process.wait(30) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)
    wait_until_idle(service)
