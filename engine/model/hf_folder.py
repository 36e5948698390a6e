"""A Hugging Face model folder: config.json, safetensors in one file or in shards, tokenizer.json and its companions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from paceline.engine.errors import ModelError

from .assets import TextAssets
from .config import ModelConfig, from_hf
from .dequantize import dequantize
from .files import file_fingerprint
from .safetensors_file import SafetensorsFile
from .weights import ModelWeights, check_tensors, expected_tensors, load_weights

_DTYPES = ("F32", "F16", "BF16")
_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"


class HFCheckpoint:
    """A model in a folder. Raises ModelError for a folder that is incomplete, damaged or not supported."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        config = _read_json(folder, "config.json", required=True)
        self.name: str = _name(folder)
        self.config: ModelConfig = from_hf(config)
        self._files = _weight_files(folder)
        self.fingerprint: str = file_fingerprint([folder / "config.json", *set(self._files.values())])
        self._shards = {path: SafetensorsFile(path) for path in set(self._files.values())}
        self._check()
        self.text: TextAssets = _text_assets(folder, config)

    def load(self) -> ModelWeights:
        return load_weights(self.config, self)

    def close(self) -> None:
        for shard in self._shards.values():
            shard.close()

    def kind(self, name: str) -> str:
        return self._shards[self._files[name]].tensors[name].kind

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The tensor's bytes, [rows, bytes per row], mapped from the file."""
        return self._shards[self._files[name]].raw(name)

    def read(self, name: str, first: int, out: NDArray[np.float32]) -> None:
        dequantize(self.raw(name)[first : first + len(out)], self.kind(name), out)

    def _check(self) -> None:
        """Compare every shard's header with what the config asks for."""
        expected = expected_tensors(self.config)
        found: dict[str, tuple[int, ...]] = {}
        for path, shard in sorted(self._shards.items()):
            for name, info in shard.tensors.items():
                found[name] = info.shape
                if name in expected and info.kind not in _DTYPES:
                    raise ModelError(
                        f"The tensor {name} in {path} has the type {info.kind}, which is not supported; "
                        f"supported: {', '.join(_DTYPES)}."
                    )
        extras = (
            name
            for name in found
            if name not in expected and name.startswith("model.layers.") and not name.endswith("rotary_emb.inv_freq")
        )
        check_tensors(expected, found, extras, str(self.folder))
        for name in expected:
            holder = self._shards.get(self._files.get(name, self.folder))
            if holder is None or name not in holder.tensors:  # the index forgets it, or names a shard without it
                raise ModelError(
                    f"{self.folder / _INDEX} does not say which shard holds the tensor {name}; "
                    "download the model again."
                )


def is_complete(folder: Path) -> bool:
    """Whether every file that a checkpoint needs is there; reads no weights."""
    try:
        _weight_files(folder)
    except ModelError:
        return False
    return all((folder / name).is_file() for name in ("config.json", "tokenizer.json"))


def _name(folder: Path) -> str:
    """The folder's name, or org/name for a snapshot in the hub cache (models--org--name/snapshots/<commit>)."""
    folder = folder.resolve()
    repository = folder.parent.parent.name
    if folder.parent.name == "snapshots" and repository.startswith("models--"):
        return repository.removeprefix("models--").replace("--", "/")
    return folder.name


def _read_text(folder: Path, name: str) -> str | None:
    try:
        return (folder / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"The file {folder / name} cannot be read: {error}.") from error


def _read_json(folder: Path, name: str, *, required: bool = False) -> dict[str, Any]:
    """A JSON object, or {} when the file is absent and not required. Raises ModelError."""
    text = _read_text(folder, name)
    if text is None:
        if required:
            raise ModelError(f"The folder {folder} has no {name}; give a Hugging Face model folder or a .gguf file.")
        return {}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ModelError(f"The file {folder / name} is not valid JSON ({error}); download the model again.") from error
    if not isinstance(value, dict):
        raise ModelError(f"The file {folder / name} must hold a JSON object; download the model again.")
    return value


def _weight_files(folder: Path) -> dict[str, Path]:
    """Tensor name -> the file that holds it."""
    index = _read_json(folder, _INDEX)
    if index:
        weight_map = index.get("weight_map")
        if not isinstance(weight_map, dict):
            raise ModelError(f"The file {folder / _INDEX} has no weight_map; download the model again.")
        files: dict[str, Path] = {}
        for name, shard in weight_map.items():
            path = folder / str(shard)
            if Path(str(shard)).name != shard:
                raise ModelError(f"The file {folder / _INDEX} names {shard!r}, which is not a file of the folder.")
            files[name] = path
        for path in sorted(set(files.values())):
            if not path.is_file():
                raise ModelError(f"The shard {path.name} is missing in {folder}; download the model again.")
        return files
    path = folder / _SINGLE
    if not path.is_file():
        raise ModelError(f"The folder {folder} has neither {_SINGLE} nor {_INDEX}; only safetensors weights are read.")
    return dict.fromkeys(SafetensorsFile(path).tensors, path)


def _text_assets(folder: Path, config: dict[str, Any]) -> TextAssets:
    tokenizer_json = _read_text(folder, "tokenizer.json")
    if tokenizer_json is None:
        raise ModelError(
            f"The folder {folder} has no tokenizer.json; convert its tokenizer with transformers, or use a GGUF file."
        )
    tokenizer_config = _read_json(folder, "tokenizer_config.json")
    eos_token = _token(tokenizer_config.get("eos_token"))
    eos_ids: tuple[int, ...] = ()
    for source in (_read_json(folder, "generation_config.json"), config):
        eos_ids = eos_ids or _ids(source.get("eos_token_id"))
    if not eos_ids and eos_token is not None:
        eos_ids = _lookup(folder, eos_token)
    return TextAssets(
        tokenizer_json=tokenizer_json,
        gguf=None,
        chat_template=_chat_template(folder, tokenizer_config),
        bos_token=_token(tokenizer_config.get("bos_token")),
        eos_token=eos_token,
        eos_ids=eos_ids,
    )


def _token(value: Any) -> str | None:
    """A special token is written as a string or as an object with its `content`."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def _ids(value: Any) -> tuple[int, ...]:
    """`eos_token_id` is an integer, a list of them, or null."""
    values = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(v for v in values if isinstance(v, int) and not isinstance(v, bool)))


def _lookup(folder: Path, token: str) -> tuple[int, ...]:
    """The id of a token by tokenizer.json: its added tokens, else its vocabulary."""
    tokenizer = _read_json(folder, "tokenizer.json")
    for added in tokenizer.get("added_tokens") or []:
        if added.get("content") == token:
            return _ids(added.get("id"))
    vocabulary = (tokenizer.get("model") or {}).get("vocab")
    return _ids(vocabulary.get(token)) if isinstance(vocabulary, dict) else ()


def _chat_template(folder: Path, tokenizer_config: dict[str, Any]) -> str | None:
    """chat_template.jinja wins, as in transformers; then tokenizer_config.json; then chat_template.json."""
    text = _read_text(folder, "chat_template.jinja")
    if text is not None:
        return text
    for source in (tokenizer_config, _read_json(folder, "chat_template.json")):
        template = source.get("chat_template")
        if isinstance(template, list):  # several, by name
            named = {t.get("name"): t.get("template") for t in template if isinstance(t, dict)}
            template = named.get("default") or next(iter(named.values()), None)
        if isinstance(template, str):
            return template
    return None
