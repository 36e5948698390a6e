"""A trace tells how a reply came about, token by token, and changes nothing: on all protocols, for all drafters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from drafting_service import DRAFTERS, drafting_service
from every_protocol import PROTOCOLS, Client
from neutral import Asked, Json
from raw_sockets import reset
from realtime_client import events_until, say, user
from service import live_server, wait_until_idle
from speaking_model import SCRIPTS, Scripts
from talks import last_seq
from tiny_models import make_folder
from traces import assert_traced

OPENINGS = Scripts().openings
TOOLS = ({"name": "look_up"}, {"name": "add"})
REPEATED = "a line that is repeated; " * 12


def says(script: str, **options: Any) -> Asked:
    asked = Asked(options={"logit_bias": {str(OPENINGS[script]): 10}, **options}, max_tokens=None)
    return replace(asked, tools=TOOLS) if "call" in script or script == "malformed" else asked


SPEAKING: Mapping[str, Asked] = {
    "words": says("words"),
    "characters over tokens": says("scripts"),
    "a character that is cut off": replace(says("scripts"), max_tokens=6),
    "a stop string": says("words", stop=["lazy", "STOP"]),
    "a stop string that is not completed": says("words", stop=["all. "]),
    "a call": says("call"),
    "no call after all": says("malformed"),
    "thoughts": says("thoughts"),
    "thoughts, then a call": says("thoughtful call"),
}
SCHEMA = {"type": "object", "properties": {"city": {"const": "Žďár"}}, "required": ["city"]}
RANDOM: Mapping[str, Asked] = {
    "greedy": Asked(messages=(("user", REPEATED),), max_tokens=40),
    "seeded": Asked(messages=(("user", REPEATED),), max_tokens=40, options={"temperature": 0.8}),
    "formed": Asked(form={"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}, max_tokens=40),
}
CASES = [("speaking", name) for name in SPEAKING] + [("random", name) for name in RANDOM]
IDS = [name for _, name in CASES]


def asked_of(case: tuple[str, str]) -> Asked:
    model, name = case
    return {"speaking": SPEAKING, "random": RANDOM}[model][name]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_trace_changes_no_reply(clients: dict[str, Client], case: tuple[str, str]) -> None:
    client, asked = clients[case[0]], asked_of(case)
    client.chat_body(asked, "none")  # the prompt is in the cache
    place = CASES.index(case)
    for number, ask in enumerate(PROTOCOLS.values()):
        plain = ask(client, asked, "none")
        for mode in ("none", "auto", DRAFTERS[(place + number) % len(DRAFTERS)]):
            assert ask(client, replace(asked, trace=True), mode) == plain


def realtime(client: Client, asked: Asked, mode: str, **more: Any) -> list[Json]:
    """All events of a reply beside the conversation."""
    response: Json = {**asked.options, "speculation": {"mode": mode, "trace": True}, "seed": 11, **more}
    response = {"temperature": 0.0, **response, "max_output_tokens": asked.max_tokens or "inf"}
    response["tools"] = [{"type": "function", "strict": False, **tool} for tool in asked.tools]
    if asked.form is not None:
        response["response_format"] = asked.form
    messages = [user(content) for _, content in asked.messages]
    with client.connect("realtime") as socket:
        say(socket, "response.create", response={**response, "conversation": "none", "input": messages})
        return events_until(socket, "response.done")


def streamed(client: Client, asked: Asked, mode: str) -> tuple[list[Json], int]:
    """A reply of chat completions, whose chunks are never merged: those with figures, and how many tokens it has."""
    chunks = client.chat_chunks(replace(asked, trace=True), mode)
    told = [{"delta": _text(chunk), "x_spec": chunk["x_spec"]} for chunk in chunks if "x_spec" in chunk]
    return told, chunks[-1]["usage"]["completion_tokens"]


def _text(chunk: Json) -> str:
    return str(chunk["choices"][0]["delta"].get("content") or "")


@pytest.fixture(scope="module")
def unlearnt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Of a server that does not know yet how seldom some of its drafters are right."""
    folder = tmp_path_factory.mktemp("unlearnt")
    make_folder(folder / "model", "smollm2", max_position_embeddings=1024)
    service = drafting_service(folder / "model", folder)
    service.start()
    with live_server(service) as live:
        client = Client(live)
        yield client
        client.close()
    service.stop()


@pytest.mark.parametrize("mode", DRAFTERS)
def test_guesses_of_every_drafter_are_told(unlearnt: Client, mode: str) -> None:
    deltas, emitted = streamed(unlearnt, RANDOM["formed" if mode == "grammar" else "greedy"], mode)
    steps = assert_traced(deltas, emitted)
    guessed = [step for step in steps if step["drafted"]]
    assert {source for step in guessed for source in step["tree"]["sources"][1:]} == {mode}
    assert any(step["accepted"] for step in guessed) or mode not in ("suffix", "grammar", "draft")


@pytest.mark.parametrize("mode", ["none", "auto", *DRAFTERS])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_every_token_is_told_with_its_step(clients: dict[str, Client], case: tuple[str, str], mode: str) -> None:
    client, asked = clients[case[0]], asked_of(case)
    deltas, emitted = streamed(client, asked, mode)
    steps = assert_traced(deltas, emitted)
    assert all(step["tree"] for step in steps)
    assert (steps[0]["reason"], steps[0]["nodes"]) == ("prefill", 1)
    sources = {name for step in steps for token in step["tokens"] for name in token["source"].split("+")}
    if mode != "auto":
        assert sources <= {"", mode} - {"none"}


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_socket_tells_the_same(clients: dict[str, Client], case: tuple[str, str]) -> None:
    """But for trees of deltas that were merged because the steps were faster than the socket."""
    events = realtime(clients[case[0]], asked_of(case), DRAFTERS[CASES.index(case) % len(DRAFTERS)])
    deltas = [event for event in events if "delta" in event]
    assert_traced(deltas, events[-1]["response"]["usage"]["output_tokens"])


@pytest.mark.parametrize("name", ["words", "a stop string that is not completed", "no call after all"])
@pytest.mark.parametrize("mode", ["none", "draft"])
@pytest.mark.parametrize("pace", [False, True])
def test_the_text_is_made_of_the_tokens(clients: dict[str, Client], name: str, mode: str, pace: bool) -> None:
    """One span for each, though some are held back until it is known that they are no mark."""
    events = realtime(clients["speaking"], SPEAKING[name], mode, voice={"pace": pace})
    deltas = [event for event in events if "delta" in event]
    tokens = [token for delta in deltas for step in delta["x_spec"]["steps"] for token in step["tokens"]]
    spans = [span for delta in deltas for span in delta["x_spec"]["spans"]]
    script = SCRIPTS["malformed" if name == "no call after all" else "words"]
    assert "".join(delta["delta"] for delta in deltas) == script
    *words, end = tokens
    assert (end["text"], "".join(token["text"] for token in words)) == ("<|im_end|>", script)
    sources = [source for size, source in spans for _ in range(size)]  # of each character: marks may cut a token in two
    assert sources == [token["source"] for token in words for _ in token["text"]]
    assert len(spans) == len(words) or name == "no call after all"
    assert {source for _, source in spans} <= ({"", "draft"} if mode == "draft" else {""})
    assert "draft" in sources or mode != "draft" or name == "no call after all"


def test_a_character_over_tokens_belongs_to_the_one_that_completes_it(clients: dict[str, Client]) -> None:
    for mode in ("none", "draft"):
        deltas = [
            each for each in realtime(clients["speaking"], SPEAKING["characters over tokens"], mode) if "delta" in each
        ]
        spans = [span for delta in deltas for span in delta["x_spec"]["spans"]]
        tokens = [token for delta in deltas for step in delta["x_spec"]["steps"] for token in step["tokens"]]
        assert any(token["text"].startswith("bytes:\\x") for token in tokens)
        assert sum(size for size, _ in spans) == len(SCRIPTS["scripts"])
        assert len(spans) < len(tokens)
        assert all(size > 0 for size, _ in spans)


def test_words_alone_tell_what_they_are_made_of(clients: dict[str, Client]) -> None:
    for name in ("thoughts", "a call"):
        told = {}
        for event in realtime(clients["speaking"], SPEAKING[name], "draft"):
            if event.get("delta"):
                told.setdefault(event["type"], set()).add("spans" in event["x_spec"])
        assert told.pop("response.output_text.delta") == {True}
        assert list(told.values()) == [{False}], name


def test_a_stop_string_inside_an_accepted_run_ends_path_and_tokens(clients: dict[str, Client]) -> None:
    """What is drafted from is an earlier reply, which went on behind it."""
    client, inside = clients["speaking"], 0
    for nodes in range(4, 14):
        speculation = {"mode": "suffix", "reuse_key": "words", "max_nodes": nodes, "trace": True}
        realtime(client, SPEAKING["words"], "suffix", speculation=speculation)
        events = realtime(client, SPEAKING["a stop string"], "suffix", speculation=speculation)
        usage = events[-1]["response"]["usage"]
        steps = assert_traced([event for event in events if "delta" in event], usage["output_tokens"])
        *before, end = [token["text"] for step in steps for token in step["tokens"]]
        assert "lazy" not in "".join(before)
        assert "lazy" in "".join([*before, end])
        inside += steps[-1]["emitted"] == steps[-1]["accepted"] < steps[-1]["drafted"]
    assert inside > 1


@pytest.mark.parametrize("mode", ["none", "suffix", "draft"])
def test_a_trace_is_told_where_figures_are_not_unless_asked(clients: dict[str, Client], mode: str) -> None:
    client, asked = clients["speaking"], SPEAKING["words"]
    told = [event for event in client.responses_events(replace(asked, trace=True), mode) if "x_spec" in event]
    assert "".join(event["delta"] for event in told) == SCRIPTS["words"]
    assert all("spans" in event["x_spec"] for event in told)
    assert_traced(told, sum(event["x_spec"]["emitted"] for event in told))
    deltas, _ = streamed(client, asked, mode)
    assert "".join(delta["delta"] for delta in deltas) == SCRIPTS["words"]
    assert all("spans" in delta["x_spec"] for delta in deltas)


def test_without_a_trace_nothing_of_it_is_told(clients: dict[str, Client]) -> None:
    events = realtime(clients["speaking"], SPEAKING["words"], "draft", speculation={"mode": "draft"})
    first, *later = [set(event["x_spec"]) for event in events if "delta" in event]
    figures = {"drafted", "accepted", "emitted", "source", "reason"}
    assert first == figures | {"input_tokens", "cached_tokens"}
    assert set().union(*later) == figures


def test_a_resumed_reply_has_steps_without_trees(clients: dict[str, Client]) -> None:
    client, bias = clients["speaking"], {str(OPENINGS["words"]): 10}
    response = {"x_resume": True, "logit_bias": bias, "temperature": 0.0, "conversation": "none"}
    response |= {"speculation": {"mode": "draft", "max_nodes": 4, "trace": True}, "input": [user("hi there")]}
    with client.connect("realtime") as socket:
        say(socket, "response.create", response=response)
        got = events_until(socket, "response.output_text.delta")
        reset(socket.socket)
    wait_until_idle(client.live.service)
    begun = next(event for event in got if event["type"] == "response.created")
    with client.connect("realtime") as socket:
        socket.recv(timeout=30)
        say(socket, "x_response.resume", response_id=begun["response"]["id"], starting_after=last_seq(got))
        rest = events_until(socket, "response.done")
    first, later = [[event for event in events if "delta" in event] for events in (got, rest)]
    assert later
    assert_traced(first, sum(delta["x_spec"]["emitted"] for delta in first))
    steps = assert_traced(later, sum(delta["x_spec"]["emitted"] for delta in later))
    assert steps
    assert all(step["tree"] is None for step in steps)
    tokens = [token["text"] for delta in first + later for step in delta["x_spec"]["steps"] for token in step["tokens"]]
    assert "".join(tokens) == SCRIPTS["words"] + "<|im_end|>"
