"""Output tokens per second with several streams at once against one: `python streams.py --help`.

Every measurement has a server of its own, so that none finds the prompts of another in its cache; numbers of streams
take turns, so that a change of the machine's pace meets all of them.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import orjson
from harness import as_command, prompt_file, record, serving

from paceline.engine.model.sources import DEFAULT_MODEL
from paceline.server.bench import BenchOptions, run_bench
from paceline.server.terminal import notices, output


def main(arguments: argparse.Namespace, benchmark: str = "streams") -> None:
    prompts = prompt_file(arguments.prompts)
    runs: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for _ in range(arguments.rounds):
        for mode in arguments.speculation:
            for streams in arguments.streams:
                with serving(arguments.model) as server, tempfile.TemporaryDirectory() as folder:
                    found = Path(folder) / "run.json"
                    options = BenchOptions(
                        url=server.url,
                        prompts=prompts,
                        concurrency=(streams,),
                        max_tokens=arguments.max_tokens,
                        limit=arguments.limit,
                        speculation=mode,
                        json=found,
                    )
                    run_bench(options, output(), notices())
                    runs.setdefault((mode, streams), []).append(orjson.loads(found.read_bytes())["runs"][0])
    rate = {key: statistics.median(run["tokens_per_s"] for run in each) for key, each in runs.items()}
    record(
        benchmark,
        [
            {
                "speculation": mode,
                "streams": streams,
                "rounds": arguments.rounds,
                "prompts": arguments.limit,
                "max_tokens": arguments.max_tokens,
                "errors": sum(run["errors"] for run in each),
                "tokens_per_s": round(rate[mode, streams], 2),
                "of_first": round(rate[mode, streams] / rate[mode, arguments.streams[0]], 3),
                **({"over_first": over_first} if len(arguments.speculation) > 1 else {}),
                **{
                    name: round(statistics.median(run[name] for run in each), 3)
                    for name in ("ttft_ms_p50", "tpot_ms_p50", "tpot_ms_p95", "itl_ms_p95")
                },
            }
            for (mode, streams), each in runs.items()
            for over_first in [round(rate[mode, streams] / rate[arguments.speculation[0], streams], 3)]
        ],
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a name the server knows, or a path")
    parser.add_argument("--prompts", help="Spec-Bench questions; default: $SPEC_BENCH")
    parser.add_argument("--streams", type=lambda text: [int(part) for part in text.split(",")], default=[1, 4, 8])
    parser.add_argument(
        "--speculation", type=lambda text: text.split(","), default=["none"], help="modes, like none,auto"
    )
    parser.add_argument("--limit", type=int, default=48, help="prompts, spread over the categories")
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    as_command(lambda: main(arguments()))
