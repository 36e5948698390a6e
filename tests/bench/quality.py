"""What the native kernels cost in quality, against float32 on the same dequantised weights: `python quality.py --help`.

Perplexity over text that ships with Python (the language reference as `pydoc` has it), in chunks that each start
afresh, every row sampled; then greedy replies side by side. Both backends see the same tokens.
"""

from __future__ import annotations

import argparse
import math
import platform
import zlib
from collections.abc import Callable, Sequence
from itertools import takewhile
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import torch
from harness import as_command, checkpoint_of, prompt_file, record, text_of
from native_figures import chain_batch
from rich.progress import Progress, track

from paceline.engine.backends import choose_ops
from paceline.engine.build import build_engine
from paceline.engine.config import EngineConfig
from paceline.engine.model.checkpoint import Checkpoint
from paceline.engine.model.decoder import Decoder, cache_shape
from paceline.engine.model.sources import DEFAULT_MODEL, default_cache
from paceline.engine.request import Delta, Request, SamplingParams, Speculation
from paceline.kernels.batch import Batch
from paceline.kernels.paging import BLOCK_SIZE
from paceline.server.bench_prompts import load_prompts, spread
from paceline.server.bench_report import percentile
from paceline.server.terminal import notices

_PIECE = 256  # rows of a pass: their logits are all kept
Forward = Callable[[Batch], tuple[Any, Any]]


def main(arguments: argparse.Namespace) -> None:
    checkpoint = checkpoint_of(arguments.model)
    configs = {
        "native": EngineConfig(
            speculator="none",
            context_length=arguments.context,
            backend="native",
            weights=arguments.weights,
            kv_format=arguments.kv_format,
            activations=arguments.activations,
        ),
        "reference": EngineConfig(speculator="none", context_length=arguments.context, backend="reference"),
    }
    facts = {
        "model": checkpoint.name,
        "weights": arguments.weights,
        "kv": arguments.kv_format,
        "activations": arguments.activations,
    }
    if arguments.tokens:
        record("perplexity", [{**facts, **perplexity(checkpoint, configs, arguments.tokens, arguments.context)}])
    if arguments.replies:
        record("greedy", [{**facts, **greedy(checkpoint, configs, arguments)}])


def perplexity(checkpoint: Checkpoint, configs: dict[str, EngineConfig], tokens: int, context: int) -> dict[str, Any]:
    """Both perplexities, their ratio, and how often both backends find the same token likeliest."""
    tokenizer, _ = text_of(checkpoint)
    text = "\n\n".join(topics[name] for name in sorted(topics))
    ids = tokenizer.encode(text)[:tokens]
    chunks = [ids[start : start + context] for start in range(0, len(ids), context)]
    forwards = {name: passes(checkpoint, config, context) for name, config in configs.items()}
    loss = dict.fromkeys(configs, 0.0)
    scored = agreed = 0
    divergence = 0.0
    for chunk in track(chunks, "perplexity", console=notices(), transient=True):
        for start in range(0, len(chunk), _PIECE):
            rows = chunk[start : start + _PIECE]
            targets = torch.tensor(chunk[start + 1 : start + len(rows) + 1])
            count = len(targets)  # a chunk's last token has no successor
            found = {name: log_probabilities(forward, rows, start)[:count] for name, forward in forwards.items()}
            for name, logs in found.items():
                loss[name] -= float(logs.gather(1, targets[:, None]).double().sum())
            ours, truth = found["native"], found["reference"]
            agreed += int((ours.argmax(1) == truth.argmax(1)).sum())
            divergence += float((truth.exp() * (truth - ours)).double().sum())
            scored += count
    values = {name: math.exp(total / scored) for name, total in loss.items()}
    return {
        "tokens": scored,
        "context": context,
        "text": f"pydoc topics of Python {platform.python_version()}, crc32 {zlib.crc32(text.encode()):08x}",
        "native": round(values["native"], 5),
        "reference": round(values["reference"], 5),
        "change": round(values["native"] / values["reference"] - 1, 6),
        "same_argmax": round(agreed / scored, 5),
        "kl": round(divergence / scored, 7),
    }


def passes(checkpoint: Checkpoint, config: EngineConfig, context: int) -> Forward:
    """The pass of one backend over a cache of one sequence."""
    ops = choose_ops(config, checkpoint, "cpu", default_cache())
    decoder = Decoder(checkpoint.config, checkpoint.load(), ops, context_length=context)
    ops.finish()
    cache = ops.allocate(cache_shape(checkpoint.config), -(-context // BLOCK_SIZE))
    return lambda batch: decoder.forward(batch, cache)


def log_probabilities(forward: Forward, ids: Sequence[int], start: int) -> torch.Tensor:
    """[rows, V] after each of `ids`, which stand at `start` and on."""
    logits, _ = forward(chain_batch(np.array(ids), start, sampled=len(ids)))
    return torch.log_softmax(torch.as_tensor(logits), 1)


def greedy(checkpoint: Checkpoint, configs: dict[str, EngineConfig], arguments: argparse.Namespace) -> dict[str, Any]:
    """Greedy replies to the same prompts: how many are equal, and where the others part."""
    _, template = text_of(checkpoint)
    asked = spread(load_prompts(prompt_file(arguments.prompts)), arguments.replies)
    prompts = [tuple(template.encode(prompt.messages)) for prompt in asked]
    room = arguments.context - arguments.max_tokens
    prompts = [prompt for prompt in prompts if len(prompt) <= room]
    replies = {name: answers(checkpoint, config, prompts, arguments.max_tokens) for name, config in configs.items()}
    pairs = list(zip(replies["native"], replies["reference"], strict=True))
    parted = [common(a, b) for a, b in pairs if a != b]
    return {
        "replies": len(pairs),
        "max_tokens": arguments.max_tokens,
        "tokens": sum(len(b) for _, b in pairs),
        "equal": len(pairs) - len(parted),
        "first_divergence_min": min(parted, default=""),
        **{f"first_divergence_p{q}": percentile(parted, q) if parted else "" for q in (20, 50, 80)},
    }


def answers(
    checkpoint: Checkpoint, config: EngineConfig, prompts: Sequence[tuple[int, ...]], max_tokens: int
) -> list[list[int]]:
    """Greedy tokens of every prompt, batched as the engine likes."""
    engine = build_engine(checkpoint, config, cache=default_cache())
    found: dict[str, list[int]] = {str(number): [] for number in range(len(prompts))}
    waiting = list(found)
    name = config.backend
    with Progress(console=notices(), transient=True) as progress:
        task = progress.add_task(f"greedy, {name}", total=len(prompts))

        def post(deltas: list[Delta]) -> None:
            for delta in deltas:
                found[delta.request_id] += delta.tokens
                if delta.finish is not None:
                    progress.advance(task)

        sampling = SamplingParams(max_tokens=max_tokens, seed=0, temperature=0.0)
        while waiting or engine.has_work:
            while waiting and len(engine.scheduler.running) + len(engine.scheduler.waiting) < config.max_batch:
                number = waiting.pop(0)
                request = Request(
                    id=number, prompt=prompts[int(number)], sampling=sampling, speculation=Speculation(mode="none")
                )
                engine.submit(request)
            engine.step(post)
    return list(found.values())


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a name the server knows, or a path")
    parser.add_argument("--weights", default="stored", help="format the native backend keeps weights in")
    parser.add_argument("--kv-format", default="auto", help="format the native backend keeps keys and values in")
    parser.add_argument("--activations", default="mixed", help="as for `paceline serve`")
    parser.add_argument("--tokens", type=int, default=24_576, help="of text; 0 for none")
    parser.add_argument("--context", type=int, default=2048, help="tokens of a chunk, and of a conversation")
    parser.add_argument("--replies", type=int, default=200, help="greedy ones compared; 0 for none")
    parser.add_argument("--max-tokens", type=int, default=128, help="of a reply")
    parser.add_argument("--prompts", help="Spec-Bench questions; default: $SPEC_BENCH")
    return parser.parse_args()


if __name__ == "__main__":
    as_command(lambda: main(arguments()))
