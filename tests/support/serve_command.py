"""`paceline serve` as people start it: in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PACELINE = Path(sys.executable).with_name("paceline")
WAIT_S = 60


@contextmanager
def serving(*arguments: str | Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The real command in a process of its own; yields it and the address it printed."""
    process = subprocess.Popen(
        [PACELINE, "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PACELINE_PORT": "0", "PACELINE_THREADS": "1", **environment},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+?:\d+", line)
        assert found is not None, process.communicate(timeout=WAIT_S)
        yield process, found.group()
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=WAIT_S)
