"""Tables and bytes of safetensors files that torch wrote; files that are damaged or go away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from paceline.engine.errors import ModelError
from paceline.engine.model.safetensors_file import SafetensorsFile

TENSORS = {
    "matrix": torch.arange(12.0).view(3, 4),
    "half": torch.tensor([[1.5, -2.0]]).half(),
    "brain": torch.tensor([[1.0, 3.0], [-0.5, 1e30]]).bfloat16(),
    "vector": torch.tensor([5.0, 6.0, 7.0]),
    "bytes": torch.tensor([1, 2, 3], dtype=torch.int8),  # three bytes: what follows may lie at an odd place
    "number": torch.tensor(4.0),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_file(TENSORS, tmp_path / "model.safetensors", metadata={"format": "pt"})
    return tmp_path / "model.safetensors"


def test_names_types_and_shapes(path: Path) -> None:
    found = {name: (info.kind, info.shape) for name, info in SafetensorsFile(path).tensors.items()}
    assert found == {
        "matrix": ("F32", (3, 4)),
        "half": ("F16", (1, 2)),
        "brain": ("BF16", (2, 2)),
        "vector": ("F32", (3,)),
        "bytes": ("I8", (3,)),
        "number": ("F32", ()),
    }


def test_bytes_are_rows(path: Path) -> None:
    file = SafetensorsFile(path)
    for name, rows in (("matrix", 3), ("half", 1), ("brain", 2), ("vector", 3), ("bytes", 3), ("number", 1)):
        raw = file.raw(name)
        assert raw.shape[0] == rows
        assert raw.tobytes() == TENSORS[name].reshape(-1).view(torch.uint8).numpy().tobytes(), name


def test_a_closed_file_is_opened_again(path: Path) -> None:
    file = SafetensorsFile(path)
    before = file.raw("matrix")
    file.close()
    assert file.raw("matrix").tobytes() == before.tobytes(), "what was read stays readable"


def test_a_file_that_went_away_is_named(path: Path) -> None:
    file = SafetensorsFile(path)
    path.unlink()
    with pytest.raises(ModelError, match=r"model\.safetensors cannot be read any more"):
        file.raw("matrix")


@pytest.mark.parametrize("left", [0, 100])
def test_a_file_that_shrank_is_named(path: Path, left: int) -> None:
    file = SafetensorsFile(path)
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(ModelError, match=r"model\.safetensors cannot be read any more"):
        file.raw("matrix")


def damaged(data: bytes) -> dict[str, bytes]:
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])

    def with_offsets(name: str, *offsets: int) -> bytes:
        changed = json.dumps({**header, name: {**header[name], "data_offsets": offsets}}).encode()
        return len(changed).to_bytes(8, "little") + changed + data[8 + length :]

    return {
        "empty": b"",
        "cut in the data": data[:-1],
        "cut in the header": data[:20],
        "longer than it says": data + b"\0",
        "a header beyond the file": (1 << 40).to_bytes(8, "little") + data[8:],
        "no JSON": data[:8] + b"x" * length + data[8 + length :],
        "a tensor outside": with_offsets("matrix", 1 << 30, (1 << 30) + 48),
        "a tensor of another size": with_offsets("matrix", 0, 4),
        "another format": b"GGUF" + data[4:],
    }


def test_damaged_files_are_refused(path: Path) -> None:
    for name, data in damaged(path.read_bytes()).items():
        path.write_bytes(data)
        with pytest.raises(ModelError, match=r"model\.safetensors is damaged or truncated .*download it again\.$"):
            raise AssertionError(f"{name}: {SafetensorsFile(path)} was opened")
