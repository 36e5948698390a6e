"""Native tests on modules built with AddressSanitizer and UBSan; passes of several threads under ThreadSanitizer.

    python sanitize.py          run by `make sanitize`; builds into a scratch folder, changes nothing else

What is built and how comes from setup.py, with the optimisation turned down and the sanitizers on. Python itself is not
instrumented: the sanitizer's library is loaded before it, and reports of leaks, which are Python's own, are off.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pybind11
import setuptools

from paceline.kernels.native import isa

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SETS = ("generic", "avx512")  # arrays without intrinsics, and the widest loads
FILES = ("attention", "cache", "feed", "layout", "linear", "module", "ops", "packing", "rank", "recorder", "sample")
# Tests whose point is equal bits run long and read no other memory than the rest.
TESTS = "not avx2 and not same_bits and not bits_of_plain and not long_contexts and not reference_tokens"
CHECKS = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all"]
PLUGIN = """
import os
import paceline.kernels.native
paceline.kernels.native.__path__.insert(0, os.environ["INSTRUMENTED"])
"""


def compiler() -> list[str]:
    return os.environ.get("CXX", "g++").split()


def library(name: str) -> str:
    """Path of a library that belongs to the compiler."""
    command = [*compiler(), f"-print-file-name={name}"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(found).is_absolute():
        sys.exit(f"The compiler has no {name}: install the sanitizer libraries that belong to it.")
    return found


def build(command: list[str]) -> None:
    subprocess.run([*compiler(), *command], cwd=ROOT, check=True)


def flags(extension: Any) -> list[str]:
    kept = [flag for flag in extension.extra_compile_args if not flag.startswith("-O")]
    return [*kept, *(f"-D{name}={value}" for name, value in extension.define_macros), *CHECKS]


def build_module(extension: Any, folder: Path) -> None:
    name = extension.name.rpartition(".")[2] + sysconfig.get_config_var("EXT_SUFFIX")
    includes = [f"-I{pybind11.get_include()}", f"-I{sysconfig.get_path('include')}"]
    options = ["-shared", "-fPIC", "-fvisibility=hidden", "-fsanitize=address,undefined"]
    build([*flags(extension), *options, *includes, *extension.sources, "-o", str(folder / name)])


def build_threads(extension: Any, folder: Path) -> None:
    include = f"-I{Path(extension.sources[0]).parent}"
    options = ["-fsanitize=thread", include, str(HERE / "sanitize.cpp"), "-o", str(folder / "threads")]
    build([*flags(extension), *options])


def run(command: list[str], **variables: str) -> int:
    environment: Mapping[str, str] = {**os.environ, **variables}
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def extensions_by_set() -> dict[str, setuptools.Extension]:
    with contextlib.chdir(ROOT):
        # By this name setuptools stands in for the module that Python had, or has.
        distribution = importlib.import_module("distutils.core").run_setup("setup.py", stop_after="init")
    return {extension.name.rpartition("_")[2]: extension for extension in distribution.ext_modules}


def main() -> int:
    extensions = extensions_by_set()
    wanted = [extensions[name] for name in SETS if name in isa.supported()]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with ThreadPoolExecutor(os.cpu_count()) as builders:
            jobs = [builders.submit(build_module, extension, folder) for extension in wanted]
            jobs.append(builders.submit(build_threads, wanted[-1], folder))
            for job in jobs:
                job.result()
        (folder / "instrumented.py").write_text(PLUGIN)
        # ThreadSanitizer wants its memory where older kernels put it.
        threads = run(["setarch", "-R", str(folder / "threads")], TSAN_OPTIONS="halt_on_error=1")
        tests = run(
            [
                *(str(Path(sys.executable).with_name("pytest")), "-q", "-p", "instrumented", "-k", TESTS),
                *("-n", str(os.cpu_count() or 1)),
                *(str(HERE / f"test_{name}.py") for name in FILES),
            ],
            # The C++ library too: thrown exceptions are followed through it.
            LD_PRELOAD=f"{library('libasan.so')} {library('libstdc++.so')}",
            ASAN_OPTIONS="detect_leaks=0:detect_odr_violation=0:allocator_may_return_null=1",
            UBSAN_OPTIONS="print_stacktrace=1",
            INSTRUMENTED=scratch,
            PYTHONPATH=os.pathsep.join([scratch, *filter(None, [os.environ.get("PYTHONPATH")])]),
            PYTHONMALLOC="malloc",  # else small blocks of Python's lie in arenas that are not watched
        )
    return threads or tests


if __name__ == "__main__":
    sys.exit(main())
