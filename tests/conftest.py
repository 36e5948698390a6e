"""What every test shares: an import path without the checkout, one thread per library, the default model.

transformers probes for a package named `kernels`. A test runner puts the checkout first on sys.path in several ways
(`python -m pytest`, an editor's runner), and then transformers finds ours; here the checkout is dropped again.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent

sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]

# Read by torch when it is loaded, here and in child processes: parallel test processes share few cores.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads would be lost in a fork, about which it warns
os.environ["PYTHONSAFEPATH"] = "1"
# Read by Triton when a kernel is defined: its kernels run here on any machine, slowly, one program after the other.
os.environ["TRITON_INTERPRET"] = "1"
# The tests decide what a command is told; a variable of the developer's shell must not.
for variable in [name for name in os.environ if name.startswith("PACELINE_") and name != "PACELINE_CACHE"]:
    del os.environ[variable]

# No deadline: the time of one example on a busy machine proves nothing.
hypothesis.settings.register_profile("paceline", deadline=None)
hypothesis.settings.load_profile("paceline")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample", type=int, default=None, metavar="N", help="run only N of the tests, evenly spread")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --sample N, keep N tests of those the other options chose; the same ones in every process."""
    wanted: int | None = config.getoption("--sample")
    if wanted is None or wanted >= len(items):
        return
    kept = {position * len(items) // wanted for position in range(wanted)}
    config.hook.pytest_deselected(items=[item for index, item in enumerate(items) if index not in kept])
    items[:] = [item for index, item in enumerate(items) if index in kept]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the equality tests compared, added up over all processes."""
    names = ("compared_replies", "compared_tokens", "near_ties")
    totals = dict.fromkeys(names, 0)
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name in totals and report.when == "call":
                totals[name] += value
    if totals["compared_replies"]:
        terminalreporter.write_line(
            "equality: {compared_replies} replies of {compared_tokens} tokens equal plain decoding, "
            "{near_ties} of them up to a near-tie".format(**totals)
        )


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """An empty cache folder of the test's own."""
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def default_model() -> Path:
    """The GGUF file of the default model, fetched once into the user's cache."""
    from paceline.engine.model.sources import DEFAULT_MODEL, default_cache, resolve

    return resolve(DEFAULT_MODEL, default_cache())
