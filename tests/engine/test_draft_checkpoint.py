from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tiny_models

from paceline.engine.draft_checkpoint import draft_form, open_draft
from paceline.engine.errors import ModelError
from paceline.engine.model.checkpoint import open_checkpoint
from paceline.kernels.linear import ArrayMatrix


def test_a_model_with_the_same_tokenizer_is_taken(tmp_path: Path) -> None:
    target = tiny_models.make_folder(tmp_path / "target", "qwen3")
    folder = tiny_models.make_folder(tmp_path / "draft", "smollm2", seed=1)
    file = tiny_models.write_gguf(folder, tmp_path / "draft.gguf", "Q4_0")
    text = open_checkpoint(target, tmp_path).text
    for path in (folder, file):
        draft = open_draft(path, text, tmp_path)
        forms = {draft_form(layer.down) for layer in draft.load().layers}
        assert forms == ({"q4"} if path is file else {"q8"})
    assert draft_form(ArrayMatrix(np.zeros((2, 32), np.float16))) == "q8"


def test_a_model_with_another_tokenizer_is_refused(tmp_path: Path) -> None:
    target = tiny_models.make_folder(tmp_path / "target", "smollm2")
    folder = tiny_models.make_folder(tmp_path / "draft", "smollm2")
    raw = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    raw["model"]["merges"] = raw["model"]["merges"][::-1]
    (folder / "tokenizer.json").write_text(json.dumps(raw), encoding="utf-8")
    with pytest.raises(ModelError, match="cannot draft for this one, whose tokenizer is another: merge 0"):
        open_draft(folder, open_checkpoint(target, tmp_path).text, tmp_path)
