"""Which module runs: the best that the processor has, or the one that is asked for by name."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from paceline.kernels.backend import BackendError, load
from paceline.kernels.native import isa


def test_the_portable_module_is_always_there() -> None:
    assert isa.supported()[-1] == "generic"
    assert set(isa.supported()) <= set(isa.PREFERENCE)


def test_the_best_is_chosen_and_any_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(isa.VARIABLE, raising=False)
    assert isa.load() is isa.load(isa.supported()[0])
    for name in isa.supported():
        monkeypatch.setenv(isa.VARIABLE, name)
        assert isa.load().__name__.endswith(f"_ops_{name}")
        assert isa.load("generic").__name__.endswith("_ops_generic")  # an argument is stronger


@pytest.mark.parametrize("name", ["neon", "AVX2", "avx-512"])
def test_an_unknown_name_is_refused_with_the_choices(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(isa.VARIABLE, name)
    with pytest.raises(isa.NativeUnavailableError, match=rf"PACELINE_ISA is '{name}'; choose one of avx512, avx2"):
        isa.load()
    with pytest.raises(BackendError, match="choose one of avx512"):
        load("native")


def test_what_the_processor_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isa, "supported", lambda: ("avx2", "generic"))
    with pytest.raises(isa.NativeUnavailableError, match="asks for avx512, but this processor supports only avx2, gen"):
        isa.load("avx512")


def test_without_a_compiled_module_the_next_one_serves_and_then_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after an installation without a compiler, or with one that lacks an instruction set."""
    real = importlib.import_module
    missing: set[str] = set()

    def import_module(name: str, package: str | None = None) -> ModuleType:
        if name in missing:
            raise ImportError(f"No module named {name}")
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", import_module)
    monkeypatch.delenv(isa.VARIABLE, raising=False)
    missing.add("._ops_avx512")
    assert isa.load().__name__.rpartition("_")[2] != "avx512"
    missing.update(f"._ops_{name}" for name in isa.PREFERENCE)
    advice = r"not compiled; install a C\+\+ compiler \(g\+\+ or clang\), then run `pip install -e \.` again\.$"
    with pytest.raises(isa.NativeUnavailableError, match=f"^The native kernels are {advice}") as caught:
        isa.load()
    assert isinstance(caught.value.__cause__, ImportError)
    with pytest.raises(BackendError, match=f"^The native kernels are {advice}"):
        load("native")
    missing.remove("._ops_generic")
    monkeypatch.setattr(isa, "supported", lambda: isa.PREFERENCE)
    with pytest.raises(isa.NativeUnavailableError, match=f"^The native kernels for avx2 are {advice}"):
        isa.load("avx2")


def test_features_are_those_of_each_module(module: ModuleType) -> None:
    assert "generic" in module.features()
    assert module.__name__.rpartition("_")[2] in module.features()
