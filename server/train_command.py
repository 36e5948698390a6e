"""The command group `paceline train`. What it runs loads torch, which takes seconds: only when it runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paceline.engine.model.sources import DEFAULT_MODEL, default_cache, resolve

from . import options as o
from .terminal import fetch_progress

if TYPE_CHECKING:
    from paceline.spec.training.run import Kind

train_app = typer.Typer(
    name="train",
    help="Train a drafter for a model, on text the model writes itself; or measure one.",
    rich_markup_mode="rich",
    no_args_is_help=True,
)


def _command(kind: Kind, text: str) -> Callable[..., None]:
    def command(
        out: o.Out,
        model: o.Model = None,
        tokens: o.TrainTokens = 800_000,
        vocab: o.DraftVocab = 8192,
        layers: o.DraftLayers = 4,
        epochs: o.Epochs = 3.0,
        minutes: o.Minutes = 60.0,
        seed: o.TrainSeed = 0,
        threads: o.Threads = None,
        prompts: o.SeedPrompts = None,
        text: o.LoggedText = None,
        start: o.StartDrafter = None,
        cache: o.Cache = None,
    ) -> None:
        from .train import TrainOptions, run_training

        name = model or DEFAULT_MODEL
        options = TrainOptions(
            kind=kind,
            model=name,
            out=out,
            tokens=tokens,
            vocab=None if kind == "draft" else vocab,
            layers=layers if kind == "draft" else None,
            epochs=epochs,
            minutes=minutes,
            seed=seed,
            threads=threads,
            prompts=prompts,
            text=text,
            start=start,
        )
        run_training(options, _resolve(name, cache), cache or default_cache())

    command.__doc__ = (
        f"Train {text}.\n\nWrites --out, a drafter that `serve --speculator` takes. When it is interrupted, the same "
        "command goes on where it was."
    )
    # A draft model has the model's vocabulary, and is trained further as a model of its own.
    meaningless = ("vocab", "start") if kind == "draft" else ("layers",)
    signature = inspect.signature(command, eval_str=True)
    kept = [parameter for name, parameter in signature.parameters.items() if name not in meaningless]
    command.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return command


train_app.command("eagle")(_command("eagle", "one layer that reads the model's hidden states and its own (EAGLE-3)"))
train_app.command("recurrent")(
    _command("recurrent", "a step without attention, from the model's last hidden state on (Recurrent Drafter)")
)
train_app.command("medusa")(_command("medusa", "heads that each guess one token further, blindly (Medusa)"))
train_app.command("hydra")(_command("hydra", "heads that know the guesses before theirs (Hydra)"))
train_app.command("draft")(_command("draft", "a small model that starts as some of the model's own layers"))


@train_app.command("eval")
def evaluate(
    drafter: o.DrafterFolder,
    prompts: o.Prompts,
    model: o.Model = None,
    seed: o.TrainSeed = 0,
    threads: o.Threads = None,
    cache: o.Cache = None,
) -> None:
    """Measure a drafter on the model's answers to prompts: how often it is right, by depth and rank."""
    from .train_eval import run_eval

    run_eval(drafter, _resolve(model or DEFAULT_MODEL, cache), cache or default_cache(), prompts, threads, seed)


def _resolve(model: str, cache: Path | None) -> Path:
    with fetch_progress() as report:
        return resolve(model, cache or default_cache(), report)
