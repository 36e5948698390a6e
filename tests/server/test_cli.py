from __future__ import annotations

import inspect
import io
import re
import signal
import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import get_args

import orjson
import pytest
import typer
from serve_command import WAIT_S, serving
from service import MODEL_ID, running_server
from tiny_models import make_folder

from paceline.engine import build
from paceline.engine.config import EngineConfig
from paceline.engine.model.sources import DEFAULT_MODEL
from paceline.kernels.backend import ACTIVATIONS, KV_FORMATS, WEIGHTS
from paceline.server import options
from paceline.server.cli import _name_of, app, chat, main, serve
from paceline.server.context import Settings
from paceline.server.key_file import KeyFile
from paceline.server.limits import Allowance


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("cli") / "tiny", "smollm2", max_position_embeddings=256)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def get(url: str, key: str | None = None) -> dict[str, object]:
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {key}"} if key else {})
    with urllib.request.urlopen(request, timeout=WAIT_S) as response:
        body: dict[str, object] = orjson.loads(response.read())
        return body


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version") == (0, "0.1.0\n", "")
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert all(name in out for name in ("serve", "chat", "fetch", "bench"))
    assert run(capsys) == (0, out, "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("serve --prt 1", "No such option: --prt"),
        ("serve --port many", "--port"),
        ("serve --port 70000", "--port"),
        ("serve --kv-memory lots", "'lots' is not a size"),
        ("serve --device gpu", "'gpu' is not one of 'auto', 'cpu', 'cuda'"),
        ("serve --max-batch 0", "--max-batch"),
        ("serve --max-nodes 65", "--max-nodes"),
        ("serve --threads 0", "--threads"),
        ("serve --context-length 1", "--context-length"),
        ("serve --api-key=", "a key is empty"),
        ("serve one two", "two"),
        ("surf", "No such command 'surf'"),
        ("bench", "url"),
        ("bench http://127.0.0.1:1", "--prompts"),
        ("bench http://127.0.0.1:1 --prompts /does/not/exist", "does not exist"),
        ("bench http://127.0.0.1:1 --prompts {file} --concurrency 0", "like 1,4,8"),
        ("bench http://127.0.0.1:1 --prompts {file} --turns some", "--turns"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], line: str, words: str
) -> None:
    code, out, err = run(capsys, *line.format(file=__file__).split())
    assert code == 2
    assert out == ""
    assert words in err
    assert err.startswith("paceline: ")
    assert err.endswith("--help`.\n")
    assert err.count("\n") == 1


def test_a_bad_variable_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_MAX_BATCH", "plenty")
    code, _, err = run(capsys, "serve")
    assert code == 2
    assert "PACELINE_MAX_BATCH" in err
    monkeypatch.delenv("PACELINE_MAX_BATCH")
    monkeypatch.setenv("PACELINE_API_KEY", "")
    assert "a key is empty" not in run(capsys, "serve", "no-such-model", "--port", "0")[2]  # one that is not set


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("serve ./no-such-model.gguf --port 0", "There is no model at no-such-model.gguf"),
        ("serve no-such-model --port 0", "There is no model called 'no-such-model'"),
        ("fetch {folder}", "no config.json"),
        ("serve --step-budget 8 --max-batch 16 --port 0", "--step-budget"),
        ("serve --host no.such.host.invalid", "no.such.host.invalid"),
        ("serve ./no-such-model.gguf --port 0 --keys {empty}", "are broken"),
        ("serve ./no-such-model.gguf --port 0 --keys {folder}/none", "make one with `paceline keys add NAME`"),
        ("chat http://127.0.0.1:1", "(or `make serve`), or give the address of one that runs"),
        ("chat ftp://x:1", "not the address of a server"),
        ("bench http://127.0.0.1:1 --prompts {file}", "No server answers"),
        ("bench http://127.0.0.1:1 --prompts {empty}", "holds no prompts"),
    ],
)
def test_expected_failures_are_one_sentence_and_exit_code_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str, words: str
) -> None:
    empty = tmp_path / "empty"
    empty.write_text("")
    code, out, err = run(capsys, *line.format(file=__file__, folder=tmp_path, empty=empty).split())
    assert code == 1
    assert out == ""
    assert words in err
    assert err.startswith("paceline: ")
    assert err.count("\n") == 1


def test_a_port_in_use_is_said_before_the_model_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, _, err = run(capsys, "serve", "./no-such-model.gguf", "--port", port)
    assert code == 1
    assert f"Port {port} on 127.0.0.1 is already in use" in err


def test_an_unknown_speculator_ends_serve_before_weights_are_packed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: Path, cache: Path
) -> None:
    def pack(*_: object, **__: object) -> None:
        raise AssertionError("the model was packed")

    monkeypatch.setattr(build, "Decoder", pack)
    line = ["serve", str(model), "--port", "0", "--device", "cpu", "--cache", str(cache)]
    code, out, err = run(capsys, *line, "--speculator", "crystal-ball")
    assert (code, out) == (1, "")
    assert err == (
        "paceline: There is no speculator 'crystal-ball' for this model; choose auto, none, suffix, grammar, or the "
        "folder of a drafter or model.\n"
    )


def test_fetch_prints_where_the_model_lies(capsys: pytest.CaptureFixture[str], model: Path, cache: Path) -> None:
    assert run(capsys, "fetch", str(model), "--cache", str(cache)) == (0, f"{model}\n", "")


def test_defaults_are_those_of_the_engine() -> None:
    """The help shows the defaults, so they are written twice."""
    shown = {name: parameter.default for name, parameter in inspect.signature(serve).parameters.items()}
    for field in EngineConfig.__dataclass_fields__.values():
        assert shown[field.name] == field.default, field.name
    names = {"drain_s": "drain"}
    for field in Settings.__dataclass_fields__.values():
        name = names.get(field.name, field.name)
        if name in shown and shown[name] is not None:
            assert shown[name] == field.default, field.name


def test_people_start_at_the_temperature_the_default_model_was_made_for() -> None:
    """In the terminal and on the page; programs get the API's own default, 1."""
    start = inspect.signature(chat).parameters["temperature"].default
    assert start == 0.2
    settings = Path(__file__).parents[2] / "web" / "src" / "settings" / "store.ts"
    assert re.findall(r'\btemperature: "(.*?)"', settings.read_text(encoding="utf-8")) == [str(start)]


def test_every_format_of_the_kernels_can_be_chosen() -> None:
    assert _choices(options.Weights) == WEIGHTS
    assert _choices(options.Activations) == ACTIVATIONS
    assert _choices(options.KVFormat) == KV_FORMATS


def _choices(option: object) -> tuple[str, ...]:
    return get_args(get_args(option)[0])


def test_every_option_has_a_variable_and_a_help_sentence() -> None:
    command = typer.main.get_command(app)
    for name, sub in command.commands.items():  # type: ignore[attr-defined]
        for parameter in sub.params:
            if parameter.name == "help":
                continue
            assert str(parameter.envvar).startswith("PACELINE_"), (name, parameter.name)
            assert parameter.help, (name, parameter.name)


# What a server is called, seen from its two sides; and where it is.
SHARED = {"PACELINE_MODEL_ID", "PACELINE_URL"}


def test_options_share_a_variable_only_where_they_mean_the_same() -> None:
    """Else one that is set for a command changes another."""
    meanings: dict[str, set[str]] = {}
    groups = [typer.main.get_command(app)]
    while groups:
        command = groups.pop()
        groups += getattr(command, "commands", {}).values()
        for parameter in command.params:
            if parameter.envvar:
                meanings.setdefault(str(parameter.envvar), set()).add(parameter.help)  # type: ignore[attr-defined]
    assert {"PACELINE_PROMPTS", "PACELINE_TRAIN_PROMPTS", "PACELINE_TRAIN_SEED"} <= meanings.keys()
    assert {variable for variable, helps in meanings.items() if len(helps) > 1} == SHARED


def test_serve_answers_under_every_name_and_stops_on_a_signal(model: Path) -> None:
    with serving(model, "--context-length", "128", PACELINE_API_KEY="k1") as (process, url):
        assert get(f"{url}/ready")["ready"] is True
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(f"{url}/v1/models")
        models = get(f"{url}/v1/models", "k1")
        assert "'id': 'tiny'" in str(models)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    assert "Traceback" not in out + err


def test_serve_with_a_file_of_keys(model: Path, tmp_path: Path) -> None:
    """And several keys beside it; each reply is a line of JSON, and a key that is made meanwhile counts at once."""
    file = KeyFile(tmp_path / "keys.json")
    file.add("anna", Allowance())
    options = ["--keys", str(file.path), "--api-key", "k1", "--api-key", "k2", "--log-format", "json"]
    with serving(model, *options, "--log-level", "info", "--drain", "1") as (process, url):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(f"{url}/v1/models", "k3")
        for key in ("k1", "k2", file.add("bert", Allowance())):
            assert get(f"{url}/v1/models", key)["object"] == "list"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=WAIT_S)
    lines = [orjson.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert [line["code"] for line in lines if line["message"] == "refused"] == ["invalid_api_key"]
    assert [line["status"] for line in lines if line["message"] == "http"] == [401, 200, 200, 200]
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--kv-memory=32KB", r"a context of only \d+ tokens; raise --kv-memory for more\.\n"),
        ("--context-length=128", r"a context of only 128 tokens; raise --context-length for more\.\n"),
        ("--max-batch=2", ""),
    ],
)
def test_too_little_room_for_a_conversation_is_said_at_the_start(model: Path, option: str, said: str) -> None:
    with serving(model, option) as (process, _):
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=WAIT_S)
    assert bool(re.search("a context of only", err)) == bool(said)
    assert re.search(said, err), err


def test_bench_and_chat_against_the_real_server(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("one two three one two three one two\nhello\n")
    record = tmp_path / "out.json"
    with running_server(tmp_path, context_length=512) as server:
        line = [
            "bench", server.url, "--prompts", str(prompts), "--compare", "--concurrency", "1,2", "--max-tokens", "24",
            "--json", str(record), "--temperature", "0.8", "--seed", "3",
        ]  # fmt: skip
        code, out, err = run(capsys, *line)
        assert code == 0, out + err
        assert out.count("2 of 2 texts equal") == 2
        monkeypatch.setattr(sys, "stdin", io.StringIO("hello there\n"))
        code, out, err = run(capsys, "chat", server.url, "--max-tokens", "5", "--model", MODEL_ID)
        assert (code, err) == (0, "")
        assert "tokens" in out
    replies = orjson.loads(record.read_bytes())["replies"]
    assert len(replies) == 8
    assert all(reply["tokens"] >= 1 and reply["tokens_from"] == "usage" for reply in replies)


def test_an_empty_model_name_is_none() -> None:
    assert _name_of("") == _name_of(None) == DEFAULT_MODEL
