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
import threading
import time
import types
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from device_report import Report
    from device_tools import Figure, Machine

PARTS = ("kernels", "equality", "bits", "rates", "steps")
# Seconds a part needs at the least, on one H200: with less left it is skipped.
_LEAST_S = {"kernels": 20, "equality": 30, "bits": 10, "rates": 15, "steps": 50}
_GRACE_S = 10  # that a part may take from later ones before it is given up
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
            sys.exit(
                f"The device check needs {name}, which {sys.executable} does not have; install it ({hint}), or "
                "name another Python, as in make device-check DEVICE_PYTHON=/path/to/python3."
            )
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
    found = Equality(_model(machine, report, arguments), _config(machine, arguments), workload)
    yield from found.figures()
    yield from report.guarded("equality", found.near_ties())


def bits(machine: Machine, report: Report, arguments: argparse.Namespace) -> Iterator[Figure]:
    from device_bits import Positions, figures

    small = Positions(length=7, contexts=(1, 4), nodes=4, chunk=5, streams=2)
    large = Positions(length=400, contexts=(1, 15, 100, 127, 128, 250, 300), nodes=64, chunk=37, streams=8)
    checkpoint = _model(machine, report, arguments)
    yield from figures(checkpoint, _ops(machine, arguments, checkpoint), small if machine.interpreted else large)


def rates(machine: Machine, report: Report, arguments: argparse.Namespace) -> Iterator[Figure]:
    from device_rates import sections

    for section in sections(machine):
        yield from report.guarded("rates", section)


def steps(machine: Machine, report: Report, arguments: argparse.Namespace) -> Iterator[Figure]:
    from device_models import LLAMA_8B, TINY, RandomModel
    from device_steps import figures

    checkpoint = RandomModel(TINY if machine.interpreted else LLAMA_8B)
    load, guarded = partial(_ops, machine, arguments, checkpoint), partial(report.guarded, "steps")
    yield from figures(machine, checkpoint, _config(machine, arguments), load, guarded)


def _config(machine: Machine, arguments: argparse.Namespace) -> Any:
    from paceline.engine.config import EngineConfig

    config = EngineConfig(device=machine.device.type, backend=arguments.backend, exact=True)
    return replace(config, step_budget=_FEW, max_batch=_FEW) if machine.interpreted else config


def _ops(machine: Machine, arguments: argparse.Namespace, checkpoint: Any) -> Any:
    from paceline.engine.backends import choose_ops

    return choose_ops(_config(machine, arguments), checkpoint, machine.device.type, None)


def _model(machine: Machine, report: Report, arguments: argparse.Namespace) -> Any:
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
        said = f"The weights are random, in the default model's shape: {error}"
        print(said, flush=True)
        if arguments.model:  # random ones are not what was asked for
            report.broken.append(said)
        return RandomModel(SMOLLM2)
    print(f"The model is {checkpoint.name}.", flush=True)
    return checkpoint


def main(arguments: argparse.Namespace) -> int:
    """0 where every figure that was made holds its bar."""
    if arguments.interpret:
        os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported
    stand_in()
    machine = find_machine(arguments)
    from device_report import Report

    report = Report(machine, arguments.commit)
    if arguments.anew:
        report.broken.append("Earlier parts broke; what there is of them is told above.")
    for place, part in enumerate(arguments.only):
        left, started, later = machine.left_s, time.monotonic(), arguments.only[place + 1 :]
        if left < _LEAST_S[part]:
            report.broken.append(f"{part}: skipped, {max(left, 0):.0f} s were left and it needs {_LEAST_S[part]} s")
            continue
        kept = sum(_LEAST_S[each] for each in later)
        patience = threading.Timer(
            max(left - kept, _LEAST_S[part]) + _GRACE_S, give_up, (machine, report, arguments, part, later)
        )
        patience.daemon = True
        if not machine.interpreted:
            patience.start()
        for figure in report.guarded(part, globals()[part](machine, report, arguments)):
            report.figure(part, figure)
            if machine.left_s < kept:
                report.broken.append(f"{part}: cut short, later parts need the {kept} s that are left")
                break
        print(f"{part}: {time.monotonic() - started:.1f} s", flush=True)
        usable = machine.is_usable  # waits for the device
        patience.cancel()
        if not usable:
            report.broken.append(f"{part}: left the device unusable for its process")
            go_on(machine, report, arguments, later)
        machine.release()
    return report.conclude()


def give_up(machine: Machine, report: Report, arguments: argparse.Namespace, part: str, later: tuple[str, ...]) -> None:
    """In a thread of its own: a kernel may never end."""
    report.broken.append(f"{part}: given up, it took longer than it may")
    go_on(machine, report, arguments, later)


def go_on(machine: Machine, report: Report, arguments: argparse.Namespace, later: tuple[str, ...]) -> None:
    """What is told so far, and the later parts by a new program in this one's place; never returns."""
    report.conclude()
    sys.stdout.flush()
    if not later:
        os._exit(1)
    options = {
        "only": ",".join(later),
        "minutes": f"{machine.left_s / 60:.3f}",
        "backend": arguments.backend,
        "commit": arguments.commit,
        "model": arguments.model,
    }
    words = [f"--{name}={value}" for name, value in options.items() if value]
    os.execv(sys.executable, [sys.executable, __file__, "--anew", *words])


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
    parser.add_argument("--anew", action="store_true", help=argparse.SUPPRESS)  # in the place of one that broke
    return parser.parse_args(words)


def parts(text: str) -> tuple[str, ...]:
    chosen = text.split(",")
    if unknown := [part for part in chosen if part not in PARTS]:
        raise argparse.ArgumentTypeError(f"there is no part {unknown[0]!r}; choose from {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in chosen)


if __name__ == "__main__":
    sys.exit(main(parse()))
