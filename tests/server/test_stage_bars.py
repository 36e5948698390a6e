from __future__ import annotations

import io

from rich.console import Console

from paceline.server.stage_bars import StageBars


def test_where_no_bar_can_be_drawn_a_line_is_said_now_and_then() -> None:
    said, now = io.StringIO(), 0.0
    bars = StageBars(Console(file=said, soft_wrap=True), lambda: now)
    for second in range(0, 80, 10):
        now = float(second)
        bars.report("writing", second / 100)
    for _ in range(2):
        bars.report("writing", 1.0)
    bars.report("training", 0.0, "loss 2.500, [1]")
    bars.stop()
    lines = ["Writing 0%", "Writing 30%", "Writing 60%", "Writing 100%", "Training 0%, loss 2.500, [1]"]
    assert said.getvalue().splitlines() == lines
