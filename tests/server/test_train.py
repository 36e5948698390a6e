"""The whole command on a tiny model: trained, interrupted, measured, loaded."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
import torch
from safetensors.torch import load_file
from tiny_models import make_folder, write_gguf

from paceline.engine.build import build_engine
from paceline.engine.config import EngineConfig
from paceline.engine.draft_checkpoint import open_draft
from paceline.engine.model.checkpoint import open_checkpoint
from paceline.engine.request import Delta, Request, SamplingParams
from paceline.server import train as training
from paceline.server.cli import main
from paceline.server.stage_bars import StageBars
from paceline.server.tokenizer import Tokenizer
from paceline.spec.cost import StepCost
from paceline.spec.training import trainer


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("train") / "tiny", "smollm2", max_position_embeddings=256)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_AT_ONCE", 8)
    monkeypatch.setattr(trainer, "_SAVE_EVERY_S", 0.0)


def line(model: Path, out: Path, cache: Path, kind: str = "eagle", *more: str) -> list[str]:
    size = {"layers": 2} if kind == "draft" else {"vocab": 64}
    options = {"out": out, "tokens": 900, **size, "epochs": 1, "threads": 1, "cache": cache}
    return ["train", kind, str(model), *(part for name, v in options.items() for part in (f"--{name}", str(v))), *more]


def run(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("kind", ["eagle", "recurrent", "medusa", "hydra", "draft"])
def test_a_drafter_is_trained_measured_and_drafts(
    capsys: pytest.CaptureFixture[str], model: Path, cache: Path, tmp_path: Path, kind: str
) -> None:
    out = tmp_path / "drafter"
    code, said, err = run(capsys, line(model, out, cache, kind))
    assert code == 0, err
    assert "Expected tokens per step" in said
    assert f"--speculator {out}" in said
    report = orjson.loads((out / "report.json").read_bytes())
    assert {"command", "date", "seed", "versions", "figures", "tokens", "history"} <= report.keys()
    assert report["command"].startswith(f"paceline train {kind}")

    prompts = tmp_path / "prompts.txt"
    prompts.write_text("hello\nand again\n" + "too long " * 300 + "\n")
    code, said, err = run(
        capsys, ["train", "eval", str(out), str(model), "--prompts", str(prompts), "--cache", str(cache)]
    )
    assert code == 0, err
    assert "rank 1" in said
    assert "2 of 3 prompts were answered." in said

    config = EngineConfig(device="cpu", context_length=128, threads=1, speculator=str(out))
    plain, guessed = reply(model, cache, replace(config, speculator="none")), reply(model, cache, config)
    assert sum(delta.drafted for delta in guessed) > 0
    assert [token for delta in guessed for token in delta.tokens] == [t for delta in plain for t in delta.tokens]


@pytest.mark.parametrize("kind", ["eagle", "recurrent", "medusa", "hydra"])
def test_a_drafter_is_trained_further(
    capsys: pytest.CaptureFixture[str], model: Path, cache: Path, tmp_path: Path, kind: str
) -> None:
    """After one small step it is nearly what it was; what does not fit is refused before anything is written."""
    first, second = tmp_path / "first", tmp_path / "second"
    assert run(capsys, line(model, first, cache, kind))[0] == 0
    code, _, err = run(capsys, line(model, second, cache, kind, "--start", str(first), "--minutes", "0.0000001"))
    assert code == 0, err
    before, after = load_file(first / "model.safetensors"), load_file(second / "model.safetensors")
    for name, values in before.items():
        torch.testing.assert_close(after[name], values, rtol=0.01, atol=1e-3, msg=name)

    other = "eagle" if kind == "recurrent" else "recurrent"
    code, _, err = run(capsys, line(model, tmp_path / "third", cache, other, "--start", str(first)))
    assert code == 1
    assert f"{first} is of the kind {kind}; --start takes one of the kind {other} here." in err
    assert not (tmp_path / "third" / "work" / "dialogues.jsonl").exists()


def reply(model: Path, cache: Path, config: EngineConfig) -> list[Delta]:
    slow = StepCost({1: 1e6, 100_000: 1e6})  # a model beside which drafting costs nothing, however busy the machine
    engine = build_engine(open_checkpoint(model, cache), config, cost=slow, cache=cache)
    deltas: list[Delta] = []
    engine.submit(Request(id="r", prompt=(1, 9, 8), sampling=SamplingParams(max_tokens=40, seed=1, temperature=0.0)))
    while engine.has_work:
        engine.step(deltas.extend)
    return deltas


def test_a_draft_model_of_a_file_is_a_model_of_its_own(
    capsys: pytest.CaptureFixture[str], model: Path, cache: Path, tmp_path: Path
) -> None:
    """It has the tokenizer and the chat template of a .gguf file that it was made from."""
    file, out = write_gguf(model, tmp_path / "tiny.gguf"), tmp_path / "drafter"
    code, _, err = run(capsys, line(file, out, cache, "draft"))
    assert code == 0, err
    text, own = open_checkpoint(file, cache).text, open_draft(out, open_checkpoint(file, cache).text, cache).text
    assert (own.chat_template, own.eos_ids) == (text.chat_template, text.eos_ids)
    words = "the thing and\n there"
    assert Tokenizer.from_assets(own).encode(words) == Tokenizer.from_assets(text).encode(words)
    assert len(reply(out, cache, EngineConfig(device="cpu", context_length=128, threads=1))) > 0


def test_an_interrupted_run_goes_on_and_ends_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: Path, cache: Path, tmp_path: Path
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert run(capsys, line(model, whole, cache, "medusa"))[0] == 0
    for stage in ("writing", "reading", "training"):
        report = StageBars.report

        def dies(self: object, now: str, share: float, note: str = "", stage: str = stage) -> None:
            if now == stage and share > 0:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(StageBars, "report", dies)
            code, _, err = run(capsys, line(model, cut, cache, "medusa"))
        assert code == 130
        assert "the same command goes on from here" in err
        assert StageBars.report is report
    assert run(capsys, line(model, cut, cache, "medusa"))[0] == 0
    assert (cut / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    code, _, err = run(capsys, [*line(model, cut, cache, "medusa"), "--seed", "7"])
    assert code == 1
    assert "--seed 0 instead of 7" in err

    quantised = write_gguf(model, tmp_path / "tiny.gguf", "Q4_0")
    code, _, err = run(capsys, line(quantised, cut, cache, "medusa"))
    assert code == 1
    assert re.search(r"other settings \(checksum of its weights \d+ instead of \d+\)", err)
    settings = orjson.loads((cut / "run.json").read_bytes())
    del settings["checksum of its weights"]  # a run that began before it was recorded
    (cut / "run.json").write_bytes(orjson.dumps(settings))
    assert run(capsys, line(model, cut, cache, "medusa"))[0] == 0


def test_eval_keeps_nothing_and_does_not_say_it_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: Path, cache: Path, tmp_path: Path
) -> None:
    assert run(capsys, line(model, tmp_path / "d", cache, "medusa"))[0] == 0

    def dies(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(StageBars, "report", dies)
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("hello\n")
    code, _, err = run(
        capsys, ["train", "eval", str(tmp_path / "d"), str(model), "--prompts", str(prompts), "--cache", str(cache)]
    )
    assert code == 130
    assert "goes on" not in err


def test_own_prompts_and_logged_conversations(
    capsys: pytest.CaptureFixture[str], model: Path, cache: Path, tmp_path: Path
) -> None:
    prompts, text = tmp_path / "p.jsonl", tmp_path / "t.jsonl"
    prompts.write_text('{"prompt": "one two"}\n' + "too long " * 300 + "\n")
    talk = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "the thing and"}]}
    text.write_bytes(orjson.dumps(talk) + b"\n" + orjson.dumps({"text": "there and then " * 9}) + b"\n")
    arguments = line(model, tmp_path / "h", cache, "hydra", "--prompts", str(prompts), "--text", str(text))
    code, said, err = run(capsys, arguments)
    assert code == 0, err
    assert "1 of 2 prompts were answered" in said
    written = (tmp_path / "h" / "work" / "dialogues.jsonl").read_bytes().splitlines()
    tokens = {record["index"]: record["tokens"] for record in map(orjson.loads, written)}
    assert tokens[0]
    assert not tokens[1]
    text.write_text('{"words": 1}\n')
    code, _, err = run(capsys, arguments)
    assert code == 1
    assert "line 1: needs 'messages' or 'text'" in err
    broken = {"messages": [{"role": "user", "content": 5}, {"role": "assistant", "content": "so"}]}
    text.write_bytes(orjson.dumps(talk) + b"\n" + orjson.dumps(broken) + b"\n")
    code, _, err = run(capsys, arguments)
    assert code == 1
    assert f"{text}, line 2: " in err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("train", 2, ""),
        ("train eagle", 2, "--out"),
        ("train eagle no-such-model --out {tmp}/x", 1, "no model called"),
        ("train eagle {model} --out {tmp}", 1, "holds other files"),
        ("train eagle {model} --out {tmp}/taken/x", 1, "cannot be written"),
        ("train medusa {model} --out {tmp}/x --tokens 0", 2, "--tokens"),
        ("train eagle no-such-model --out {tmp}/x --epochs 0", 2, "0 is no number of epochs; write one above 0"),
        ("train eagle no-such-model --out {tmp}/x --epochs inf", 2, "inf is no number of epochs"),
        ("train eagle no-such-model --out {tmp}/x --epochs nan", 2, "nan is no number of epochs"),
        ("train eagle no-such-model --out {tmp}/x --epochs -1", 2, "-1 is no number of epochs"),
        ("train eagle no-such-model --out {tmp}/x --minutes inf", 2, "inf is no number of minutes; write one like 60"),
        ("train eagle no-such-model --out {tmp}/x --minutes nan", 2, "--minutes"),
        ("train eagle no-such-model --out {tmp}/x --minutes -1", 2, "--minutes"),
        ("train eagle no-such-model --out {tmp}/x --seed 99999999999999999999", 2, "--seed"),
        ("train draft {model} --out {tmp}/x --layers 3", 1, "ask for fewer"),
        ("train draft {model} --out {tmp}/x --vocab 64", 2, "--vocab"),
        ("train eagle {model} --out {tmp}/x --layers 2", 2, "--layers"),
        ("train eval {tmp} {model} --prompts {tmp}/taken", 1, "config.json cannot be read"),
        ("train eval {tmp}/nowhere {model} --prompts {tmp}/taken", 2, "does not exist"),
    ],
)
def test_mistakes_are_one_sentence(
    capsys: pytest.CaptureFixture[str], model: Path, cache: Path, tmp_path: Path, arguments: str, code: int, words: str
) -> None:
    (tmp_path / "taken").write_text("hello\n")
    found, _, err = run(capsys, arguments.format(model=model, tmp=tmp_path).split())
    assert found == code
    if words:
        assert words in err
        assert err.startswith("paceline: ")
        assert err.count("\n") == 1


def test_every_option_has_a_variable_and_a_help_sentence() -> None:
    import typer

    from paceline.server.cli import app

    group = typer.main.get_command(app).commands["train"]  # type: ignore[attr-defined]
    assert set(group.commands) == {"eagle", "recurrent", "medusa", "hydra", "draft", "eval"}
    for sub in group.commands.values():
        for parameter in sub.params:
            if parameter.name != "help":
                assert str(parameter.envvar).startswith("PACELINE_"), parameter.name
                assert parameter.help, parameter.name


def test_the_help_loads_no_torch() -> None:
    import subprocess

    code = (
        "import sys; from paceline.server.cli import main; main(['train', '--help']); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
