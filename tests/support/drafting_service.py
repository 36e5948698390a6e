"""A service whose model has a drafter of every kind, and drafts whatever the machine's speed says."""

from __future__ import annotations

from pathlib import Path

from fakes import AlwaysDrafting, FixedCost
from tiny_heads import heads_tensors, write_eagle, write_own, write_recurrent

from paceline.engine.build import build_engine
from paceline.engine.config import EngineConfig
from paceline.engine.model.checkpoint import open_checkpoint
from paceline.server.chat_template import ChatTemplate
from paceline.server.service import Service
from paceline.server.tokenizer import Tokenizer

_COST = {1: 1e6, 100_000: 1e6}  # ms of a step: so long that every drafter pays, and the same for all numbers of rows
DRAFTERS = ("suffix", "grammar", "medusa", "hydra", "eagle", "recurrent", "draft")


def drafting_service(model: Path, folder: Path) -> Service:
    """A service of the model in `model`, not started. The draft model is the model itself, and is always right; all
    other trained drafters are random. `folder` takes their files."""
    checkpoint = open_checkpoint(model, folder / "cache")
    config = checkpoint.config
    heads, more = heads_tensors(config.hidden_size), heads_tensors(config.hidden_size, hydra=True)
    drafters = [
        write_own(folder / "medusa", "PacelineMedusa", heads),
        write_own(folder / "hydra", "PacelineHydra", more),
        write_eagle(folder / "eagle", config),
        write_recurrent(folder / "recurrent", config),
        model,
    ]
    options = EngineConfig(device="cpu", threads=1, speculator=",".join(["suffix", "grammar", *map(str, drafters)]))
    text = checkpoint.text
    tokenizer = Tokenizer.from_assets(text)
    return Service(
        model_id="tiny",
        engine=build_engine(checkpoint, options, cost=FixedCost(_COST), guard=AlwaysDrafting(), cache=folder / "cache"),
        tokenizer=tokenizer,
        template=ChatTemplate(text.chat_template, text.bos_token, text.eos_token, tokenizer),
        max_nodes=options.max_nodes,
    )
