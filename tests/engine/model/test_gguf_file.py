"""The GGUF reader: its index, and the sentences for damaged files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_models import MERGES, VOCAB, load_tensors, make_folder, write_gguf

from paceline.engine.errors import ModelError
from paceline.engine.model.gguf_file import GGUFFile


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_folder(tmp_path_factory.mktemp("hf") / "tiny", "llama2")
    return write_gguf(folder, folder.with_suffix(".gguf"))


@pytest.fixture
def copy(tiny: Path, tmp_path: Path) -> Path:
    path = tmp_path / "copy.gguf"
    path.write_bytes(tiny.read_bytes())
    return path


def _index(cache: Path) -> Path:
    (path,) = (cache / "index").iterdir()
    return path


def test_metadata_and_tensors(tiny: Path, tmp_path: Path) -> None:
    for _ in range(2):  # parsed, then from the index
        file = GGUFFile(tiny, tmp_path)
        assert file.metadata["general.architecture"] == "llama"
        assert len(file.metadata["tokenizer.ggml.tokens"]) == VOCAB
        assert file.metadata["tokenizer.ggml.merges"] == [" ".join(pair) for pair in MERGES]
        assert file.tensors["token_embd.weight"].shape == (VOCAB, 64)
        values = np.empty((VOCAB, 64), np.float32)
        file.rows("token_embd.weight", slice(None), values)
        expected = load_tensors(tiny.with_suffix(""))["model.embed_tokens.weight"].numpy()
        np.testing.assert_array_equal(values, expected)


def test_a_warm_start_does_not_import_the_parser(tiny: Path, tmp_path: Path) -> None:
    GGUFFile(tiny, tmp_path)
    program = (
        "import sys; from pathlib import Path; from paceline.engine.model.gguf_file import GGUFFile;"
        "file = GGUFFile(Path(sys.argv[1]), Path(sys.argv[2]));"
        "assert file.metadata['general.name'] == 'tiny'; assert 'gguf' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    subprocess.run([sys.executable, "-c", program, str(tiny), str(tmp_path)], check=True, env=environment, timeout=60)


def test_the_index_is_reused_and_follows_the_file(copy: Path, tmp_path: Path) -> None:
    GGUFFile(copy, tmp_path)
    first = _index(tmp_path).stat()
    GGUFFile(copy, tmp_path)
    assert _index(tmp_path).stat().st_ino == first.st_ino  # not written again
    os.utime(copy, ns=(1, 1))
    GGUFFile(copy, tmp_path)
    assert _index(tmp_path).stat().st_ino != first.st_ino  # one file, replaced


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "older version"])
def test_a_damaged_index_is_made_again(copy: Path, tmp_path: Path, damage: str) -> None:
    GGUFFile(copy, tmp_path)
    path = _index(tmp_path)
    good = path.read_bytes()
    flipped = good.replace(b'"llama.context_length":256', b'"llama.context_length":257')
    older = good.replace(b'"key":[1,', b'"key":[0,')
    path.write_bytes({"truncate": good[:-9], "flip": flipped, "empty": b"", "older version": older}[damage])
    assert GGUFFile(copy, tmp_path).metadata["llama.context_length"] == 256
    assert _index(tmp_path).read_bytes() == good
    assert json.loads(good.partition(b"\n")[2])["metadata"]["general.name"] == "tiny"


def test_a_cache_that_cannot_be_written_only_costs_time(tiny: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "cache"
    blocked.write_text("a file, not a folder")
    assert GGUFFile(tiny, blocked).metadata["general.name"] == "tiny"


def test_every_truncation_is_refused(tiny: Path, tmp_path: Path) -> None:
    data = tiny.read_bytes()
    header = GGUFFile(tiny, tmp_path).tensors["token_embd.weight"].offset
    for length in [4, 8, 20, 100, header // 2, header - 40, header + 10, len(data) // 2, len(data) - 1]:
        cut = tmp_path / f"cut{length}.gguf"
        cut.write_bytes(data[:length])
        with pytest.raises(ModelError, match=f"truncated at {length:,} bytes"):
            GGUFFile(cut, tmp_path / "cache")


@pytest.mark.parametrize(
    ("offset", "value", "words"),
    [
        (0, b"GGML", "not a GGUF file"),
        (0, b"", "not a GGUF file"),
        (4, (99).to_bytes(4, "little"), "damaged"),  # version
        (4, (3).to_bytes(4, "big"), "big-endian"),
        (8, (2**60).to_bytes(8, "little"), "truncated|damaged"),  # tensor count
        (16, (2**60).to_bytes(8, "little"), "truncated|damaged"),  # key count
        (24, (2**63).to_bytes(8, "little"), "truncated|damaged"),  # length of the first key
    ],
)
def test_damaged_headers(copy: Path, tmp_path: Path, offset: int, value: bytes, words: str) -> None:
    data = bytearray(copy.read_bytes())
    data[offset : offset + len(value)] = value
    copy.write_bytes(bytes(data) if value else b"")
    with pytest.raises(ModelError, match=words) as caught:
        GGUFFile(copy, tmp_path / "cache")
    assert str(copy) in str(caught.value)


def test_an_array_longer_than_the_file(copy: Path, tmp_path: Path) -> None:
    """A damaged length of an array of numbers must not be looped over to the end of time."""
    data = copy.read_bytes()
    key = b"tokenizer.ggml.token_type"
    at = data.index(key) + len(key) + 8  # after the key: array, element type, then the length
    assert int.from_bytes(data[at : at + 8], "little") == VOCAB
    copy.write_bytes(data[:at] + (2**59).to_bytes(8, "little") + data[at + 8 :])
    with pytest.raises(ModelError, match=r"truncated|damaged"):
        GGUFFile(copy, tmp_path / "cache")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot be read: No such file"):
        GGUFFile(tmp_path / "none.gguf", tmp_path)
