"""The figures of the Triton backend on this machine's NVIDIA GPU: `python device_check.py --help`.

Parts, in this order: every kernel against float64; an engine that speculates against plain decoding, and the bits of
its logits; how fast kernels and steps are, against a large copy on the same device. Needs torch with CUDA, Triton and
numpy, and no network.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
import types
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from device_tools import Check, Figure, Machine

PARTS = ("kernels", "equality", "bits", "rates", "steps")
# Seconds a part needs at the least, on one H200: with less left it is skipped.
_LEAST_S = {"kernels": 20, "equality": 30, "bits": 10, "rates": 15, "steps": 50}
_FEW = 8  # rows of a step, where passes are slow


def stand_in() -> None:
    """A machine that is lent for minutes may lack what the engine reads files with: the standard library reads JSON as
    well, and weights made at random are in no file.
    """

    def dumps(value: Any, option: int = 0) -> bytes:
        return json.dumps(value).encode()

    for name, members in (
        ("orjson", {"loads": json.loads, "dumps": dumps, "JSONDecodeError": json.JSONDecodeError}),
        ("safetensors", {"SafetensorError": OSError, "safe_open": None}),
    ):
        if util.find_spec(name) is None:
            sys.modules[name] = types.ModuleType(name)
            vars(sys.modules[name]).update(members)


def find_machine(arguments: argparse.Namespace) -> Machine:
    """Exits, in one sentence, where there is no GPU to measure."""
    for name, hint in (("torch", "a build with CUDA"), ("triton", "it comes with torch's CUDA builds")):
        if util.find_spec(name) is None:
            sys.exit(f"The device check needs {name}, which {sys.executable} does not have; install it ({hint}).")
    import torch
    from device_tools import Machine

    if not arguments.interpret and not torch.cuda.is_available():
        sys.exit(
            "torch sees no NVIDIA GPU here, and the device check measures one; run it on a machine with a GPU and its "
            "driver, or try the program itself at tiny sizes with --interpret."
        )
    if arguments.interpret:
        import interpreter

        interpreter.hasten()
    return Machine(interpreted=arguments.interpret, minutes=arguments.minutes)


class Report:
    """Prints figures as they come, and keeps them: those of a device also in the record, part by part."""

    def __init__(self, machine: Machine, commit: str) -> None:
        from device_tools import provenance

        self._made = {} if machine.interpreted else provenance(commit)
        self.figures: list[tuple[str, Figure]] = []
        self.failed: list[str] = []

    def figure(self, part: str, figure: Figure) -> None:
        from device_tools import RESULTS, append, figure_row

        self.figures.append((part, figure))
        bar = f"   {figure.bar} {figure.held}" if figure.bar else ""
        print(f"{part}: {figure.name}: {figure.value:.5g} {figure.unit}{bar}", flush=True)
        if self._made:
            append(RESULTS / "device_check.csv", [figure_row(part, figure, self._made)])

    def check(self, check: Check) -> None:
        from device_tools import RESULTS, append, check_row

        if not check.ok:
            self.failed.append(f"{check.op} {check.variant} {check.note}")
        error = check.note or f"{check.error:.3g} <= {check.bound:g}"
        print(f"{'ok ' if check.ok else 'BAD'} {check.op}: {check.variant}: {error}", flush=True)
        if self._made:
            append(RESULTS / "device_kernels.csv", [check_row(check, self._made)])


def kernels(machine: Machine, report: Report, arguments: argparse.Namespace) -> Iterator[Figure]:
    from device_kernels import checks
    from device_tools import NONE, Figure

    count = failed = 0
    for check in checks(machine):
        report.check(check)
        count, failed = count + 1, failed + (not check.ok)
    yield Figure("checks that failed", failed, f"of {count}", NONE)


def equality(machine: Machine, report: Report, arguments: argparse.Namespace) -> Iterator[Figure]:
    from device_equality import Equality, Workload

    small = Workload(prompts=2, longest=15, tokens=4, together=2, fitting=1, nodes=4)
    large = Workload(prompts=50, longest=100, tokens=128, together=8, fitting=3)
    workload = small if machine.interpreted else large
    yield from Equality(_model(machine, arguments), _config(machine, arguments), workload).figures()


def bits(machine: Machine, report: Report, arguments: argparse.Namespace) -> Iterator[Figure]:
    from device_bits import Positions, figures

    small = Positions(length=7, contexts=(1, 4), nodes=4, chunk=5, streams=2)
    large = Positions(length=400, contexts=(1, 15, 100, 127, 128, 250, 300), nodes=64, chunk=37, streams=8)
    checkpoint = _model(machine, arguments)
    yield from figures(checkpoint, _ops(machine, arguments, checkpoint), small if machine.interpreted else large)


def rates(machine: Machine, report: Report, arguments: argparse.Namespace) -> Iterator[Figure]:
    from device_rates import figures

    yield from figures(machine)


def steps(machine: Machine, report: Report, arguments: argparse.Namespace) -> Iterator[Figure]:
    from device_models import LLAMA_8B, TINY, RandomModel
    from device_steps import figures

    checkpoint = RandomModel(TINY if machine.interpreted else LLAMA_8B)
    yield from figures(machine, checkpoint, _config(machine, arguments), partial(_ops, machine, arguments, checkpoint))


def _config(machine: Machine, arguments: argparse.Namespace) -> Any:
    from paceline.engine.config import EngineConfig

    config = EngineConfig(device=machine.device.type, backend=arguments.backend, exact=True)
    return replace(config, step_budget=_FEW, max_batch=_FEW) if machine.interpreted else config


def _ops(machine: Machine, arguments: argparse.Namespace, checkpoint: Any) -> Any:
    from paceline.engine.backends import choose_ops

    return choose_ops(_config(machine, arguments), checkpoint, machine.device.type, None)


def _model(machine: Machine, arguments: argparse.Namespace) -> Any:
    """The model asked for, or the default one where it is on this disk; else one of its shape with random weights."""
    from device_models import SMOLLM2, TINY, RandomModel

    from paceline.engine.errors import ModelError
    from paceline.engine.model.checkpoint import open_checkpoint
    from paceline.engine.model.sources import DEFAULT_MODEL, default_cache

    if machine.interpreted:
        return RandomModel(TINY)
    path = Path(arguments.model) if arguments.model else default_cache() / "models" / f"{DEFAULT_MODEL}.gguf"
    try:
        checkpoint = open_checkpoint(path, default_cache())
    except (ModelError, ImportError) as error:
        print(f"The weights are random, in the default model's shape: {error}", flush=True)
        return RandomModel(SMOLLM2)
    print(f"The model is {checkpoint.name}.", flush=True)
    return checkpoint


def main(arguments: argparse.Namespace) -> int:
    """0 where every figure that was made holds its bar."""
    if arguments.interpret:
        os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported
    stand_in()
    machine = find_machine(arguments)
    report = Report(machine, arguments.commit)
    broken = []
    for place, part in enumerate(arguments.only):
        left, started = machine.left_s, time.monotonic()
        if left < _LEAST_S[part]:
            broken.append(f"{part}: skipped, {max(left, 0):.0f} s were left and it needs {_LEAST_S[part]} s")
            continue
        kept = sum(_LEAST_S[later] for later in arguments.only[place + 1 :])
        try:
            for figure in globals()[part](machine, report, arguments):
                report.figure(part, figure)
                if machine.left_s < kept:
                    broken.append(f"{part}: cut short, later parts need the {kept} s that are left")
                    break
        except Exception as error:  # a part that breaks takes no other one's figures with it
            traceback.print_exc()
            broken.append(f"{part}: broke off, {type(error).__name__}: {error}")
        machine.release()
        print(f"{part}: {time.monotonic() - started:.1f} s", flush=True)
    return conclude(machine, report, broken)


def conclude(machine: Machine, report: Report, broken: list[str]) -> int:
    """The verdict: every figure that has a bar, and what there is none of."""
    from device_tools import NONE, SOME, table

    judged = [(part, figure) for part, figure in report.figures if figure.bar is not None]
    lines = [(part, f.name, f"{f.value:.4g} {f.unit}", str(f.bar), f.held) for part, f in judged]
    print("\n" + table([("part", "figure", "value", "bar", "held"), *lines]))
    for line in [*report.failed, *broken]:
        print(line)
    missed = [figure for _, figure in judged if figure.held == "NO"]
    if machine.interpreted:
        print("Interpreted on the CPU at tiny sizes: no figure says anything about a device, and none is recorded.")
        missed = [figure for figure in missed if figure.bar in (NONE, SOME)]  # the others are of time
    return 1 if broken or report.failed or missed else 0


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", metavar="FILE", help="a .gguf file or a folder; else the default model in the cache")
    parser.add_argument("--minutes", type=float, default=5.0, help="parts that no longer fit are skipped (5)")
    parser.add_argument("--only", type=parts, default=PARTS, metavar="PARTS", help=f"of {','.join(PARTS)}")
    parser.add_argument("--commit", default="", help="of these sources, where they are no git checkout")
    parser.add_argument("--backend", default="triton", help="that engines and steps run on (triton)")
    parser.add_argument(
        "--interpret", action="store_true", help="every part at tiny sizes on the CPU, nothing recorded"
    )
    return parser.parse_args(words)


def parts(text: str) -> tuple[str, ...]:
    chosen = text.split(",")
    if unknown := [part for part in chosen if part not in PARTS]:
        raise argparse.ArgumentTypeError(f"there is no part {unknown[0]!r}; choose from {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in chosen)


if __name__ == "__main__":
    sys.exit(main(parse()))
