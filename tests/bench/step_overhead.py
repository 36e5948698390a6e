"""Time per engine step outside the kernels, at one stream: `python step_overhead.py --help`.

A step is scheduling, drafting, planning, the pass, the sampling walk, committing, posting and learning. Of the pass,
native code counts its own time: what is left of the step is outside the kernels. The reference backend has no such
count; there, the whole pass is taken for kernels.
"""

from __future__ import annotations

import argparse
from typing import Any

from harness import as_command, checkpoint_of, quantiles, record, text_of
from native_figures import replays

from paceline.engine.build import build_engine
from paceline.engine.config import EngineConfig
from paceline.engine.engine import Engine
from paceline.engine.model.sources import DEFAULT_MODEL, default_cache
from paceline.engine.request import Delta, Request, SamplingParams, Speculation

QUESTION = (
    "Here is a list: apples, pears, plums, cherries, apricots, peaches. Repeat the list three times, word for word, "
    "then explain in your own words which of these fruits keep longest and why."
)


class Counted:
    """Stands in for a recorded program and adds up the milliseconds its runs take."""

    def __init__(self, program: Any) -> None:
        self._program = program
        self.ms = 0.0

    def __len__(self) -> int:
        return len(self._program)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def run(self, *arguments: Any) -> float:
        seconds: float = self._program.run(*arguments)
        self.ms += seconds * 1e3
        return seconds


def main(arguments: argparse.Namespace) -> None:
    tokens = arguments.tokens
    checkpoint = checkpoint_of(arguments.model)
    _, template = text_of(checkpoint)
    prompt = tuple(template.encode([{"role": "user", "content": QUESTION}]))
    engine = build_engine(checkpoint, EngineConfig(threads=arguments.threads), cache=default_cache())
    counted = [Counted(replay.program) for replay in replays()]
    for replay, program in zip(replays(), counted, strict=True):
        replay.program = program
    rows = []
    for mode in ("none", "auto"):
        measure(engine, counted, prompt, mode, min(tokens, 16))  # warm
        steps, passes, kernels = measure(engine, counted, prompt, mode, tokens)
        outside = [step - kernel for step, kernel in zip(steps, kernels, strict=True)]
        rows.append(
            {
                "speculation": mode,
                "steps": len(steps),
                **quantiles("step_ms", steps),
                **quantiles("forward_ms", passes),
                **quantiles("kernels_ms", kernels),
                **quantiles("outside_ms", outside),
                "outside_share": round(sum(outside) / sum(steps), 4),
            }
        )
    record("step_overhead", rows)


def measure(
    engine: Engine, counted: list[Counted], prompt: tuple[int, ...], mode: str, tokens: int
) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds of each step of one reply, of its pass, and inside the kernels; the prefill steps are left out."""
    steps: list[float] = []
    passes: list[float] = []
    kernels: list[float] = []
    decoding = False

    def post(deltas: list[Delta]) -> None:
        nonlocal decoding
        decoding = decoding or bool(deltas)

    def native_ms() -> float:
        return sum(each.ms for each in counted)

    sampling = SamplingParams(max_tokens=tokens, seed=0, temperature=0.0)
    engine.submit(Request(id=f"{mode}-{tokens}", prompt=prompt, sampling=sampling, speculation=Speculation(mode=mode)))
    while engine.has_work:
        was_decoding, before, native = decoding, engine.stats(), native_ms()
        engine.step(post)
        after = engine.stats()
        if was_decoding:
            steps.append(after.step_ms - before.step_ms)
            passes.append(after.forward_ms - before.forward_ms)
            kernels.append(native_ms() - native if counted else passes[-1])
    return steps, passes, kernels


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a name the server knows, or a path")
    parser.add_argument("--threads", type=int, help="default: one per core")
    parser.add_argument("--tokens", type=int, default=256, help="of the reply")
    return parser.parse_args()


if __name__ == "__main__":
    as_command(lambda: main(arguments()))
