"""From what a user typed to a model on disk: the default model by name, a path, or a Hugging Face hub id."""

from __future__ import annotations

import os
import re
from pathlib import Path

from paceline.engine.errors import ModelError

from .default_model import DEFAULT_MODEL, fetch_default
from .files import Report, quiet
from .hub import fetch_from_hub

__all__ = ["DEFAULT_MODEL", "Report", "default_cache", "quiet", "resolve"]

_HUB_ID = re.compile(r"[\w][\w.-]*/[\w][\w.-]*")


def default_cache() -> Path:
    """Where models and their indexes are kept: $PACELINE_CACHE, $XDG_CACHE_HOME/paceline, or ~/.cache/paceline."""
    own = os.environ.get("PACELINE_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    # The XDG base directory specification says to ignore relative paths.
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache") / "paceline"


def resolve(name: str, cache: Path, report: Report = quiet) -> Path:
    """Find the model called `name`, fetching it if need be: the path of a .gguf file or a Hugging Face folder.

    `report(stage, done, total)` is called while fetching, in bytes; a total of 0 is unknown. The network is used only
    for a default model or hub snapshot that the disk does not hold yet. Raises ModelError.
    """
    if name in (DEFAULT_MODEL, "default"):
        return fetch_default(cache, report)
    path = Path(name).expanduser()
    try:
        is_folder, is_file = bool(name) and path.is_dir(), path.is_file()
    except OSError as error:  # such as a name longer than the system allows
        raise _unknown(name[:80]) from error
    if is_folder:
        if not (path / "config.json").is_file():
            raise ModelError(
                f"The folder {path} has no config.json; give a Hugging Face model folder, or the path of a .gguf file."
            )
        return path
    if is_file:
        if path.suffix.lower() != ".gguf":
            raise ModelError(f"The file {path} is not a .gguf file; give one, or the folder that holds config.json.")
        return path
    if path.suffix.lower() == ".gguf" or path.is_absolute() or name.startswith((".", "~")):
        raise ModelError(f"There is no model at {path}; check the path.")
    if _HUB_ID.fullmatch(name):
        return fetch_from_hub(name, report)
    raise _unknown(name)


def _unknown(name: str) -> ModelError:
    return ModelError(
        f"There is no model called {name!r}; give {DEFAULT_MODEL!r}, the path of a .gguf file or of a Hugging Face "
        "model folder, or a hub id such as org/name."
    )
