"""Speculation on against off over the whole server, on Spec-Bench prompts: `python chat.py [PROMPTS [LIMIT]]`.

The prompts are `question.jsonl` of hemingkx/Spec-Bench (Apache-2.0); their path is the first argument, $SPEC_BENCH, or
a file next to the checkout.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from harness import PACELINE, RESULTS, serving

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data" / "spec_bench_questions.jsonl"


def main(prompts: Path, limit: int) -> int:
    if not prompts.is_file():
        print(
            f"There is no file {prompts}: download data/spec_bench/question.jsonl of hemingkx/Spec-Bench from GitHub "
            "and name it, as in `make bench ARGS=question.jsonl`, or in the variable SPEC_BENCH.",
            file=sys.stderr,
        )
        return 2
    with serving() as server:
        command = [PACELINE, "bench", server.url, "--prompts", prompts, "--limit", str(limit), "--compare"]
        return subprocess.run([*command, "--max-tokens", "128", "--csv", RESULTS / "chat.csv"], check=False).returncode


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(
        main(
            Path(arguments[0] if arguments else os.environ.get("SPEC_BENCH", BESIDE)),
            int(arguments[1]) if len(arguments) > 1 else 24,
        )
    )
