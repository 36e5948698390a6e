"""Builds the native kernels: one source, compiled once per instruction set.

Everything else about the package is in pyproject.toml. A machine without a compiler still installs: the extensions are
optional, and the server then runs on plain torch and says so.
"""

import platform
from pathlib import Path

from pybind11.setup_helpers import Pybind11Extension
from setuptools import setup

COMMON = ["-std=c++17", "-ffp-contract=off", "-fno-math-errno", "-pthread"]
X86 = {
    "avx512": ["-O3", "-march=x86-64-v4", "-mavx512vnni", "-mprefer-vector-width=512", "-DPACELINE_AVX512"],
    "avx2": ["-O2", "-mavx2", "-mfma", "-mf16c", "-DPACELINE_AVX2"],
}
SETS = {"generic": ["-O2"], **(X86 if platform.machine() in ("x86_64", "AMD64") else {})}

setup(
    options={"build_ext": {"parallel": True}},  # extensions beside each other
    ext_modules=[
        Pybind11Extension(
            f"paceline.kernels.native._ops_{isa}",
            ["kernels/native/src/module.cpp"],
            depends=[str(header) for header in Path("kernels/native/src").glob("*.h")],
            define_macros=[("PACELINE_MODULE", f"_ops_{isa}")],
            extra_compile_args=[*COMMON, *flags],
            extra_link_args=["-pthread"],
            optional=True,
        )
        for isa, flags in SETS.items()
    ],
)
