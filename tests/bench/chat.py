"""Speculation on against off over the whole server, on Spec-Bench prompts: `python chat.py --help`."""

from __future__ import annotations

import argparse
import subprocess

from harness import PACELINE, RESULTS, as_command, prompt_file, serving

from paceline.engine.model.sources import DEFAULT_MODEL


def main(arguments: argparse.Namespace) -> int:
    prompts = prompt_file(arguments.prompts)
    with serving(arguments.model) as server:
        command = [str(PACELINE), "bench", server.url, "--prompts", str(prompts), "--limit", str(arguments.limit)]
        command += ["--compare", "--max-tokens", str(arguments.max_tokens), "--csv", str(RESULTS / "chat.csv")]
        return subprocess.run(command, check=False).returncode


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a name the server knows, or a path")
    parser.add_argument("--prompts", help="Spec-Bench questions; default: $SPEC_BENCH")
    parser.add_argument("--limit", type=int, default=24, help="prompts, spread over the categories")
    parser.add_argument("--max-tokens", type=int, default=128)
    return parser.parse_args()


if __name__ == "__main__":
    as_command(lambda: main(arguments()))
