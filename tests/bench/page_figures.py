"""What the page benchmark asks the browser, and the rows it records."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]

PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"

SHOWN = "least => Number(document.querySelector('#tokens').textContent.replace(/\\D/g, '')) >= least"

START = """() => {
    const seen = window.seen = {gaps: [], tasks: [], start: performance.now(), running: true};
    const observer = new PerformanceObserver(list => seen.tasks.push(...list.getEntries().map(task => task.duration)));
    observer.observe({entryTypes: ['longtask']});
    let last = performance.now();
    const frame = now => {
        seen.gaps.push(now - last);
        last = now;
        if (seen.running) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
}"""

STOP = """() => {
    window.seen.running = false;
    return {...window.seen, seconds: (performance.now() - window.seen.start) / 1000};
}"""


def row(figure: str, value: float, bar: float | str, *, rounds: int = 1) -> Row:
    return {"figure": figure, "value": round(value, 3), "bar": bar, "rounds": rounds}
