"""Speculation under load: `streams` with what speculates beside plain decoding, from one stream to many."""

from __future__ import annotations

import sys

from harness import as_command
from streams import arguments, main

_DEFAULTS = ["--speculation", "none,auto", "--streams", "1,2,4,8,16,32"]

if __name__ == "__main__":
    sys.argv[1:1] = _DEFAULTS  # what the user gives comes later and counts
    as_command(lambda: main(arguments(), "load"))
