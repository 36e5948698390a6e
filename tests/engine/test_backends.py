"""The kernels that were asked for, or the best that can run the model here; what keeps them is said in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import RandomCheckpoint

from paceline.engine.backends import choose_ops
from paceline.engine.config import EngineConfig
from paceline.engine.errors import ConfigError
from paceline.kernels import backend
from paceline.kernels.backend import BackendError, Ops, Options
from paceline.kernels.native import isa


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(31)


def choose(checkpoint: RandomCheckpoint, *, device: str = "cpu", **options: object) -> Ops:
    return choose_ops(EngineConfig(**options), checkpoint, device, None)  # type: ignore[arg-type]


def refusal(checkpoint: RandomCheckpoint, **options: object) -> str:
    with pytest.raises(ConfigError) as caught:
        choose(checkpoint, **options)  # type: ignore[arg-type]
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


def test_a_model_the_native_kernels_do_not_fit_runs_on_the_reference(
    checkpoint: RandomCheckpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """Its heads have eight channels: asked for, the kernels refuse; left to choose, torch takes over and says why."""
    try:
        isa.load()
    except isa.NativeUnavailableError as error:
        pytest.skip(str(error))
    refused = refusal(checkpoint, backend="native")
    assert "multiple of 16" in refused
    assert choose(checkpoint).name == "reference"
    assert caplog.messages == [f"Running on torch's kernels, which are slower. {refused}"]


def test_what_keeps_the_native_kernels_from_running_is_said_in_one_sentence(
    checkpoint: RandomCheckpoint,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    reason = "PACELINE_ISA is 'x'."

    def missing() -> None:
        raise isa.NativeUnavailableError(reason)

    monkeypatch.setattr(isa, "load", missing)
    assert refusal(checkpoint, backend="native") == reason
    assert choose(checkpoint).name == "reference"
    assert caplog.messages == [f"Running on torch's kernels, which are slower. {reason}"]


@pytest.mark.parametrize(
    ("option", "value", "usual"),
    [("weights", "q4", "stored"), ("activations", "int8", "mixed"), ("kv_format", "int8", "auto")],
)
def test_formats_of_the_native_kernels_are_refused_elsewhere(
    checkpoint: RandomCheckpoint, option: str, value: str, usual: str
) -> None:
    message = refusal(checkpoint, backend="reference", **{option: value})
    owners = "native" if option == "activations" else "native or triton"
    assert message == f"--{option.replace('_', '-')} {value} needs the {owners} kernels; leave it at {usual} here."
    assert choose(checkpoint, backend="reference", **{option: usual}).name == "reference"


def test_exactness_is_not_promised_by_torch(checkpoint: RandomCheckpoint) -> None:
    message = refusal(checkpoint, backend="reference", exact=True)
    assert message == "--exact needs the native or triton kernels; leave it out here."
    refused = refusal(checkpoint, exact=True)  # the native kernels do not fit the model: torch would take over
    assert refused.startswith("--exact cannot be had here; leave it out. The native kernels")


@pytest.mark.parametrize("value", ["bf16", "fp8"])
def test_cache_formats_of_gpus_are_refused_on_a_cpu(
    checkpoint: RandomCheckpoint, caplog: pytest.LogCaptureFixture, value: str
) -> None:
    message = refusal(checkpoint, backend="reference", kv_format=value)
    assert message == f"--kv-format {value} needs the triton kernels; leave it at auto here."
    reason = f"native kernels cache keys and values as f16 or int8, not as {value}; choose one of these."
    assert refusal(checkpoint, backend="native", kv_format=value) == f"The {reason}"
    message = refusal(checkpoint, kv_format=value)
    assert message == f"--kv-format {value} cannot be had here; leave it at auto. The {reason}"
    assert not caplog.messages


def test_an_unknown_activation_format_is_refused_with_the_known_ones(checkpoint: RandomCheckpoint) -> None:
    message = refusal(checkpoint, backend="native", activations="int4")
    assert message == "There is no activation format 'int4'; choose one of mixed, int8, int16."


def told(monkeypatch: pytest.MonkeyPatch, *, missing: str = "") -> list[tuple[str, Options]]:
    """What `backend.load` is asked for from now on; `missing` cannot run."""
    asked: list[tuple[str, Options]] = []

    def load(name: str, options: Options) -> Ops:
        asked.append((name, options))
        if name == missing:
            raise BackendError("No GPU that fits is here; use another.")
        return reference

    reference = backend.load()
    monkeypatch.setattr(backend, "load", load)
    return asked


def test_a_gpu_runs_triton_and_is_told_what_was_asked(
    checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = told(monkeypatch)
    choose(checkpoint, device="cuda", weights="q4", kv_format="fp8", exact=True)
    (name, options), *more = asked
    assert not more
    assert (name, options.device, options.weights, options.kv, options.exact) == ("triton", "cuda", "q4", "fp8", True)


def test_a_gpu_triton_cannot_use_runs_torch_unless_triton_was_asked_for(
    checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = told(monkeypatch, missing="triton")
    choose(checkpoint, device="cuda")
    assert [name for name, _ in asked] == ["triton", "reference"]
    assert caplog.messages == ["Running on torch's kernels, which are slower. No GPU that fits is here; use another."]
    assert refusal(checkpoint, device="cuda", backend="triton") == "No GPU that fits is here; use another."
    caplog.clear()
    message = refusal(checkpoint, device="cuda", kv_format="int8")
    assert message == "--kv-format int8 cannot be had here; leave it at auto. No GPU that fits is here; use another."
    assert not caplog.messages


def test_activations_are_the_native_kernels_own(checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch)
    message = refusal(checkpoint, device="cuda", activations="int8")
    assert message == "--activations int8 needs the native kernels; leave it at mixed here."


def test_native_kernels_are_refused_on_a_gpu(checkpoint: RandomCheckpoint) -> None:
    assert "--backend native runs on the CPU" in refusal(checkpoint, device="cuda", backend="native")


def test_packed_weights_are_kept_where_there_is_a_folder(
    checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = told(monkeypatch)
    choose_ops(EngineConfig(), checkpoint, "cpu", tmp_path)
    choose_ops(EngineConfig(), checkpoint, "cpu", None)
    stores = [options.store for _, options in asked]
    assert stores[0] is not None
    assert stores[0].is_relative_to(tmp_path)
    assert stores[1] is None
