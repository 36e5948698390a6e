"""Triton's interpreter, made quicker. Loading this loads triton."""

from __future__ import annotations

from typing import Any

import triton.language as tl
from triton.runtime import interpreter

_patch = interpreter._patch_lang


def _patch_once(fn: Any) -> Any:
    """Triton patches its language for each call of a function of a kernel, which its launch has done already for all
    but functions of the standard library: half of the time.
    """
    langs = [each for each in (tl, tl.core) if any(value is each for value in fn.__globals__.values())]
    if any(tl.core.is_builtin(lang.full) for lang in langs):
        return _patch(fn)
    return interpreter._LangPatchScope()


def hasten() -> None:
    interpreter._patch_lang = _patch_once
