"""Kernels compiled for GPUs that are not there: one row of figures per variant and target.

Triton interprets kernels where TRITON_INTERPRET is set when they are defined, and an interpreted kernel cannot be
compiled: import this module before any kernel.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

os.environ.pop("TRITON_INTERPRET", None)
# Triton 3.9 warns where this is unset, and 3.10 will read that as 0: floating-point operations are fused.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.cache import triton_key

from paceline.kernels.gpu.variant import ALIGNMENT, Variant

VERSION: str = triton.__version__
SHARED_BYTES = {"sm_80": 163 * 1024, "sm_90": 227 * 1024, "gfx942": 64 * 1024}  # what one program may have at most

_GPUS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
_TENSOR_CORE = {"ptx": re.compile(r"\b(?:mma\.sync|wgmma\.mma_async)\b"), "amdgcn": re.compile(r"\bv_mfma_\w+")}


@dataclass(frozen=True, slots=True)
class Figures:
    """What a variant takes on a target.

    registers: vector registers per thread. spilled_bytes: of registers per thread, to memory, or on AMD to lanes and
    registers left over. stack_bytes: memory per thread, spilled registers included. shared_bytes: per program.
    tensor_core: instructions in the assembly.
    """

    variant: str
    target: str
    registers: int
    spilled_bytes: int
    stack_bytes: int
    shared_bytes: int
    tensor_core: int
    triton: str = VERSION

    def faults(self) -> list[str]:
        """Why the variant must not be launched on the target, or slows it down; a sentence each."""
        found = []
        if self.spilled_bytes and self.stack_bytes:
            found.append(f"spills {self.spilled_bytes} bytes of registers per thread")
        if self.shared_bytes > SHARED_BYTES[self.target]:
            found.append(f"takes {self.shared_bytes} bytes of shared memory, more than {SHARED_BYTES[self.target]}")
        return [f"{self.variant} on {self.target} {fault}." for fault in found]


def compiled(variant: Variant, target: str) -> Figures:
    """Compile one variant for one target. Raises whatever Triton or the assembler raises."""
    names = variant.kernel.arg_names
    source = ASTSource(
        fn=variant.kernel,
        signature={name: variant.types.get(name, "constexpr") for name in names},
        constexprs=dict(variant.constants),
        attrs={(names.index(name),): [["tt.divisibility", ALIGNMENT]] for name in variant.aligned},
    )
    options = {"num_warps": variant.num_warps, "num_stages": variant.num_stages}
    log = io.StringIO()  # Triton prints what the assembler says
    with contextlib.redirect_stdout(log):
        kernel = triton.compile(source, target=_GPUS[target], options=options)
    language = "amdgcn" if "amdgcn" in kernel.asm else "ptx"
    text = kernel.asm[language]
    used = of_amdgcn(text) if language == "amdgcn" else of_ptxas(log.getvalue())
    tensor_core = len(_TENSOR_CORE[language].findall(text))
    return Figures(variant.name, target, **used, shared_bytes=kernel.metadata.shared, tensor_core=tensor_core)


def of_ptxas(log: str) -> dict[str, int]:
    """The log of `ptxas -v` for one kernel. Raises ValueError when it says something else."""
    stack = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    registers = re.search(r"Used (\d+) registers", log)
    if stack is None or registers is None:
        raise ValueError(f"ptxas did not say what the kernel takes: {log!r}")
    frame, stores, loads = map(int, stack.groups())
    return {"registers": int(registers[1]), "spilled_bytes": max(stores, loads), "stack_bytes": frame}


def of_amdgcn(text: str) -> dict[str, int]:
    """The metadata at the end of AMD's assembly; there a spilled register is one of 4 bytes."""
    names = ("vgpr_count", "vgpr_spill_count", "sgpr_spill_count", "private_segment_fixed_size")
    found = {name: re.search(rf"^\s+\.{name}:\s*(\d+)", text, re.MULTILINE) for name in names}
    if missing := [name for name, match in found.items() if match is None]:
        raise ValueError(f"The assembly for AMD does not say {', '.join(missing)}.")
    vectors, vector_spills, scalar_spills, stack = (int(match[1]) for match in found.values() if match)
    return {"registers": vectors, "spilled_bytes": 4 * (vector_spills + scalar_spills), "stack_bytes": stack}


@dataclass(frozen=True, slots=True)
class Failure:
    """A variant that a compiler refused, or died of."""

    variant: str
    target: str
    message: str

    def faults(self) -> list[str]:
        return [f"{self.variant} on {self.target} does not compile: {self.message}"]


Result = Figures | Failure


def compile_each(variants: Iterable[Variant], targets: Iterable[str], processes: int) -> Iterator[Result]:
    """Compile variants for those of `targets` they have, each in a process of its own, as compilers may abort.

    Yields them as they are done. Writes to Triton's cache, and reads nothing from it.
    """
    knobs.compilation.always_compile = True
    knobs.nvidia.dump_ptxas_log = True
    triton_key()  # takes half a second, once: the children inherit it
    waiting = [(variant, target) for variant in variants for target in targets if target in variant.targets][::-1]
    fork = multiprocessing.get_context("fork")  # kernels cannot be pickled
    running: dict[Connection, tuple[Any, Variant, str]] = {}
    while waiting or running:
        while waiting and len(running) < processes:
            variant, target = waiting.pop()
            receiver, sender = fork.Pipe(duplex=False)
            process = fork.Process(target=_send, args=(sender, variant, target))
            process.start()
            sender.close()
            running[receiver] = process, variant, target
        for receiver in wait(list(running)):
            process, variant, target = running.pop(receiver)
            try:
                result = receiver.recv()
            except EOFError:
                process.join()
                result = Failure(variant.name, target, f"the compiler ended with status {process.exitcode}")
            process.join()
            receiver.close()
            yield result


def _send(sender: Connection, variant: Variant, target: str) -> None:
    with tempfile.TemporaryFile() as words:
        os.dup2(words.fileno(), 2)  # LLVM writes past Python, whole programs when it fails
        try:
            sender.send(compiled(variant, target))
        except Exception as error:
            words.seek(0)
            said = [line for line in words.read().decode(errors="replace").splitlines() if "error:" in line]
            sender.send(Failure(variant.name, target, "\n".join([*_chain(error), *said])))


def _chain(error: BaseException | None) -> Iterator[str]:
    """An error and its causes: for an error in a function that a kernel calls, the place of each call."""
    while error is not None:
        yield f"{type(error).__name__}: {error}"
        error = error.__cause__
