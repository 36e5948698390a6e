"""Folders of drafters are read as they are, and what cannot be read is refused in one sentence."""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from paceline.engine.drafter_file import DrafterFile
from paceline.engine.errors import ModelError

VALUES = torch.tensor([[0.5, -2.0, 3.0], [1e-3, 0.1, 400.0]])


def folder(path: Path, config: str = "{}", tensors: dict[str, torch.Tensor] | None = None) -> Path:
    (path / "config.json").write_text(config)
    save_file(tensors or {}, path / "model.safetensors")
    return path


def pickled(path: Path, content: object) -> Path:
    (path / "config.json").write_text("{}")
    torch.save(content, path / "pytorch_model.bin")
    return path


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(ModelError) as caught:
        read()
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (None, "config.json cannot be read (No such file or directory); name a drafter's folder."),
        ("{'hidden_size': 3}", "config.json is not JSON"),
        ('{"a": NaN}', "config.json is not JSON"),
        ("", "config.json is not JSON"),
        ("[" * 5000, "config.json is not JSON"),
        ("[1]", "config.json must hold a JSON object"),
        ("null", "config.json must hold a JSON object"),
    ],
)
def test_a_config_that_cannot_be_read_is_refused(tmp_path: Path, config: str | None, words: str) -> None:
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    assert words in refusal(lambda: DrafterFile(tmp_path))


@pytest.mark.parametrize("value", [True, False, -1, 0, "8", [8], {}, 2.5])
def test_sizes_are_whole_numbers_above_zero(tmp_path: Path, value: Any) -> None:
    file = DrafterFile(folder(tmp_path, json.dumps({"size": value, "again": 8.0, "empty": None})))
    message = refusal(lambda: file.size("size", 3))
    assert f"has {value!r} as size, which must be a whole number above 0" in message
    if value == 2.5:
        assert file.number("size") == 2.5
    else:
        assert "must be a number above 0" in refusal(lambda: file.number("size"))
    assert file.size("again") == 8
    assert isinstance(file.size("again"), int)
    assert file.size("absent", 4) == file.size("empty", 4) == 4
    for name in ("absent", "empty"):
        assert f"does not say {name}" in refusal(lambda name=name: file.size(name))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("config", "found"),
    [("{}", ()), ('{"architectures": ["A", 3, "B"]}', ("A", "B")), ('{"architectures": "A"}', ())],
)
def test_architectures_are_the_words_of_the_list(tmp_path: Path, config: str, found: tuple[str, ...]) -> None:
    assert DrafterFile(folder(tmp_path, config)).architectures == found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("as_pickle", [True, False])
def test_floats_of_every_width_are_read_as_float32(tmp_path: Path, dtype: torch.dtype, as_pickle: bool) -> None:
    tensors = {
        "m": VALUES.to(dtype),
        "v": VALUES[0].to(dtype),
        "one": VALUES[0, 0].to(dtype),
        "no": VALUES[:0].to(dtype),
    }
    tensors["deep"] = VALUES.to(dtype).reshape(1, 2, 3)
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    file = DrafterFile(pickled(tmp_path, tensors) if as_pickle else folder(tmp_path, tensors=tensors))
    for name, tensor in tensors.items():
        read = file.floats(name, *tensor.shape)
        assert read.dtype == np.float32
        assert np.array_equal(read, tensor.float().numpy()), name
    file.floats("m", 2, 3)[0, 0] = 9
    assert file.floats("m", 2, 3)[0, 0] == 0.5, "what is handed out is a copy"
    assert "m" in file
    assert "x" not in file
    assert file.shape("m") == (2, 3)
    assert file.shape("one") == (1,)


@pytest.mark.parametrize("as_pickle", [True, False])
def test_ids_are_whole_numbers(tmp_path: Path, as_pickle: bool) -> None:
    tensors = {"long": torch.tensor([3, -(2**40)]), "short": torch.tensor([3, -4], dtype=torch.int32)}
    tensors |= {"real": torch.tensor([1.0, 2.0]), "flags": torch.tensor([True, False])}
    file = DrafterFile(pickled(tmp_path, tensors) if as_pickle else folder(tmp_path, tensors=tensors))
    assert file.ids("long", 2).tolist() == [3, -(2**40)]
    assert file.ids("short", 2).tolist() == [3, -4]
    assert file.ids("short", 2).dtype == np.int64
    for name in ("real", "flags"):
        assert "must hold whole numbers" in refusal(lambda name=name: file.ids(name, 2))  # type: ignore[misc]


def test_tensors_that_are_missing_or_of_another_shape_are_named(tmp_path: Path) -> None:
    file = DrafterFile(folder(tmp_path, tensors={"m": VALUES}))
    assert "has the shape [2, 3] where [3, 2] is needed" in refusal(lambda: file.floats("m", 3, 2))
    assert "has the shape [2, 3] where [6] is needed" in refusal(lambda: file.tensor("m", 6))
    for read in (lambda: file.floats("x", 1), lambda: file.tensor("x", 1), lambda: file.shape("x")):
        assert f"The tensor x is missing in the drafter {tmp_path}" in refusal(read)


def test_a_type_no_drafter_has_is_named(tmp_path: Path) -> None:
    file = DrafterFile(folder(tmp_path, tensors={"m": torch.zeros(4, dtype=torch.uint8)}))
    assert "has the type U8, which no drafter is read from; convert it" in refusal(lambda: file.floats("m", 4))


@pytest.mark.parametrize(
    "content",
    [b"", b"12345678", b"\xff" * 20, struct.pack("<Q", 3) + b"{{{", None],
    ids=["empty", "short", "long header", "no header", "cut"],
)
def test_damaged_safetensors_are_refused(tmp_path: Path, content: bytes | None) -> None:
    path = folder(tmp_path, tensors={"m": VALUES}) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-4] if content is None else content)
    assert "is damaged or truncated" in refusal(lambda: "m" in DrafterFile(tmp_path))


def test_a_folder_without_weights_is_refused_when_they_are_needed(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    file = DrafterFile(tmp_path)
    assert "has none of the files model.safetensors, " in refusal(lambda: "m" in file)


def test_safetensors_are_preferred_to_a_pickle(tmp_path: Path) -> None:
    pickled(tmp_path, {"m": VALUES * 2})
    assert DrafterFile(folder(tmp_path, tensors={"m": VALUES})).floats("m", 2, 3)[0, 0] == 0.5


class Bomb:
    """Pickled, it is a call of open() with a file to be written: what loading it runs."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self._path), "w")


@pytest.mark.parametrize("save", ["torch.save", "pickle"])
def test_code_in_a_pickle_is_refused_and_not_run(tmp_path: Path, save: str) -> None:
    mark = tmp_path / "mark"
    content = {"m": VALUES, "x": Bomb(mark)}
    pickled(tmp_path, content)
    if save == "pickle":
        (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(content, protocol=2))
    message = refusal(lambda: "m" in DrafterFile(tmp_path))
    assert "hold code beside tensors, and code is not run" in message
    assert "weights_only" not in message, "torch's advice would run it"
    assert not mark.exists()
    content["x"].__reduce__()[0](*content["x"].__reduce__()[1]).close()  # type: ignore[operator]
    assert mark.exists(), "it can go off"


@pytest.mark.parametrize("content", [b"", b"hello world", None], ids=["empty", "text", "cut"])
def test_damaged_pickles_are_refused(tmp_path: Path, content: bytes | None) -> None:
    path = pickled(tmp_path, {"m": VALUES}) / "pytorch_model.bin"
    path.write_bytes(path.read_bytes()[:-300] if content is None else content)
    assert "pytorch_model.bin are damaged" in refusal(lambda: "m" in DrafterFile(tmp_path))


@pytest.mark.parametrize(
    "content",
    [
        [VALUES],
        {"state_dict": {"m": VALUES}},
        {"m": 1},
        {3: VALUES},
        {"m": VALUES.to_sparse()},
        {"m": torch.ones(2, dtype=torch.complex64)},
        {"m": torch.ones(2, device="meta")},
    ],
    ids=["list", "nested", "number", "numbered", "sparse", "complex", "meta"],
)
def test_pickles_of_anything_but_plain_tensors_are_refused(tmp_path: Path, content: object) -> None:
    pickled(tmp_path, content)
    assert "are not a table of plain tensors" in refusal(lambda: "m" in DrafterFile(tmp_path))


def test_parameters_and_views_in_a_pickle_are_read(tmp_path: Path) -> None:
    pickled(tmp_path, {"m": torch.nn.Parameter(VALUES), "turned": VALUES.T})
    file = DrafterFile(tmp_path)
    assert np.array_equal(file.floats("m", 2, 3), VALUES.numpy())
    assert file.floats("turned", 3, 2).flags.c_contiguous


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(ModelError, match="no regular file"):
        DrafterFile(tmp_path)
