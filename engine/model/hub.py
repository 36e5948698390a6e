"""Models of the Hugging Face hub, kept in the hub's own cache ($HF_HOME) so that other tools share them."""

from __future__ import annotations

import errno
import io
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.engine.errors import ModelError

if TYPE_CHECKING:
    from .files import Report

_FILES = [
    "config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "tokenizer*.json",
    "chat_template*",
    "generation_config.json",
]


def fetch_from_hub(repository: str, report: Report) -> Path:
    """The folder of a repository's snapshot; a complete one on disk is used without any network. Raises ModelError."""
    # Late: importing the client costs time that a start from a file does not need to spend.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    from .hf_folder import is_complete

    try:
        folder = Path(snapshot_download(repository, allow_patterns=_FILES, local_files_only=True))
        if is_complete(folder):
            return folder
    except (LocalEntryNotFoundError, HFValidationError):
        pass
    try:
        folder = Path(
            snapshot_download(repository, allow_patterns=_FILES, tqdm_class=_progress_class(report), max_workers=4)
        )
    except GatedRepoError as error:
        raise ModelError(
            f"The hub model {repository} is gated; accept its terms on its page, then run `hf auth login`."
        ) from error
    except RepositoryNotFoundError as error:
        raise ModelError(
            f"There is no folder {repository} here and no public model of that id on the hub; check the spelling."
        ) from error
    except HFValidationError as error:
        raise ModelError(f"The hub id {repository!r} is not valid; it looks like org/name.") from error
    except (LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
        raise ModelError(
            f"The hub model {repository} is not on this machine yet and the hub cannot be reached; "
            "check the network, or give the path of a model."
        ) from error
    except HfHubHTTPError as error:
        raise ModelError(f"The hub refused the model {repository} ({_first_line(error)}); try again later.") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ModelError(
                f"The disk of the hub's cache has too little space for {repository}; "
                "free some, or set HF_HOME to a folder on another disk."
            ) from error
        raise ModelError(f"The hub model {repository} could not be stored ({_first_line(error)}).") from error
    except Exception as error:  # the hub's HTTP client, which it does not promise, broke off
        raise ModelError(
            f"The download of the hub model {repository} stopped ({_first_line(error) or type(error).__name__}); "
            "try again: finished files are kept."
        ) from error
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"The hub model {repository} has no config.json; if it holds .gguf files, "
            "download one and give its path instead."
        )
    return folder


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _progress_class(report: Report) -> Any:
    """A tqdm that draws nothing and reports bytes: the hub counts those received and those written, in two bars."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    guard = threading.Lock()
    best = 0

    class Progress(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "file": io.StringIO()})

        def update(self, n: float | None = 1) -> bool | None:
            nonlocal best
            changed: bool | None = super().update(n)
            if self.unit == "B":
                with guard:
                    best = max(best, int(self.n))
                    report("download", best, int(self.total or 0))
            return changed

    return Progress
