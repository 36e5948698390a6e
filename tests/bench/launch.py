"""Launch to /ready with the model in the cache, and the memory the server then holds: `python launch.py [RUNS]`."""

from __future__ import annotations

import subprocess
import sys

from harness import PACELINE, quantiles, record, serving


def main(runs: int) -> None:
    subprocess.run([PACELINE, "fetch"], check=True, stdout=subprocess.DEVNULL)
    ready, resident, peak = [], [], []
    for _ in range(runs):
        with serving() as server:
            ready.append(server.ready_s)
            memory = server.memory_mb()
            resident.append(memory.get("rss_mb", 0.0))
            peak.append(memory.get("peak_rss_mb", 0.0))
    record("launch", [{"runs": runs, **quantiles("ready_s", ready), "rss_mb": max(resident), "peak_rss_mb": max(peak)}])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
