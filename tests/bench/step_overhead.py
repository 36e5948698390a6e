"""Python time per engine step outside the model's pass, at one stream: `python step_overhead.py [TOKENS]`.

What is left of a step once the forward pass and the sampling walk are taken out: scheduling, drafting, planning,
committing, posting, learning.
"""

from __future__ import annotations

import sys

from harness import quantiles, record

from paceline.engine.build import build_engine
from paceline.engine.config import EngineConfig
from paceline.engine.engine import Engine
from paceline.engine.model.checkpoint import open_checkpoint
from paceline.engine.model.sources import DEFAULT_MODEL, default_cache, resolve
from paceline.engine.request import Delta, Request, SamplingParams, Speculation
from paceline.server.chat_template import ChatTemplate
from paceline.server.tokenizer import Tokenizer

QUESTION = (
    "Here is a list: apples, pears, plums, cherries, apricots, peaches. Repeat the list three times, word for word, "
    "then explain in your own words which of these fruits keep longest and why."
)


def main(tokens: int) -> None:
    cache = default_cache()
    checkpoint = open_checkpoint(resolve(DEFAULT_MODEL, cache), cache)
    assets = checkpoint.text
    tokenizer = Tokenizer.from_assets(assets)
    template = ChatTemplate(assets.chat_template or "", assets.bos_token, assets.eos_token, tokenizer)
    prompt = tuple(template.encode([{"role": "user", "content": QUESTION}]))
    engine = build_engine(checkpoint, EngineConfig())
    rows = []
    for mode in ("none", "auto"):
        measure(engine, prompt, mode, min(tokens, 16))  # warm
        outside, inside = measure(engine, prompt, mode, tokens)
        rows.append(
            {
                "speculation": mode,
                "steps": len(outside),
                **quantiles("outside_ms", outside),
                **quantiles("forward_ms", inside),
            }
        )
    record("step_overhead", rows)


def measure(engine: Engine, prompt: tuple[int, ...], mode: str, tokens: int) -> tuple[list[float], list[float]]:
    """Milliseconds outside and inside the pass of each step of one reply, the prefill steps left out."""
    outside: list[float] = []
    inside: list[float] = []
    decoding = False

    def post(deltas: list[Delta]) -> None:
        nonlocal decoding
        decoding = decoding or bool(deltas)

    sampling = SamplingParams(max_tokens=tokens, seed=0, temperature=0.0)
    engine.submit(Request(id=f"{mode}-{tokens}", prompt=prompt, sampling=sampling, speculation=Speculation(mode=mode)))
    while engine.has_work:
        was_decoding, before = decoding, engine.stats()
        engine.step(post)
        after = engine.stats()
        if was_decoding:
            inside.append(after.forward_ms - before.forward_ms)
            outside.append(after.step_ms - before.step_ms - inside[-1])
    return outside, inside


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 128)
