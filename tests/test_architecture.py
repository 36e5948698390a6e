"""The shape of the code: which room may use which, what loads what, how long a file may be, what has a test."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import tiny_models
from safetensors.torch import save_file

from paceline.kernels.native import isa

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("kernels", "spec", "engine", "server")  # each may import itself and the rooms before it
BARE_NAMES = (*ROOMS, "web")

# The books of the cache and the schedule are plain Python: they are tested without a tensor, and stay readable.
TENSOR_FREE = tuple(
    f"paceline.engine.{name}" for name in ("sequence", "block_pool", "prefix_cache", "page_table", "scheduler")
)
HEAVY = ("torch", "triton", "transformers")

# path -> why it may import torch, besides the backends that compute with tensors
LOADS_TORCH: dict[str, str] = {
    f"spec/training/{name}.py": "a drafter learns by torch's gradients; serving never loads it"
    for name in (
        *("batches", "draft_student", "eagle", "eagle_student", "export", "heads", "layers", "lesson"),
        *("recurrent_student", "run", "student", "trainer"),
    )
}

LINES = 300
# path -> (lines, why this file may be longer)
LONGER_FILES: dict[str, tuple[int, str]] = {}

# path -> where it is tested instead, or why it has no test of its own
TESTED_ELSEWHERE: dict[str, str] = {
    "kernels/gpu/nucleus.py": "as draws have filters, in tests/kernels/gpu/test_sample.py",
    "kernels/gpu/partial_softmax.py": "as attention launches it, in tests/kernels/gpu/test_tree_attention.py",
    "engine/grammar.py": "protocols, kept by the matchers of tests/server/test_grammars.py",
    "server/caller.py": "a protocol, and whoever keeps it by doing nothing",
    "server/prepared.py": "a plain record, filled in tests/server/test_service.py",
    "server/train_command.py": "as a user calls it, in tests/server/test_train.py",
    "server/train_eval.py": "as a user calls it, in tests/server/test_train.py",
    "server/train_text.py": "with a model's template, in tests/server/test_train.py",
    "spec/cached_model.py": "a protocol, kept by the models of tests/spec/test_cached_drafter.py",
    "spec/training/batches.py": "in whole runs, in tests/spec/training/test_run.py",
    "spec/training/eagle_student.py": "beside the layer and the drafter's pass, in tests/spec/training/test_eagle.py",
    "spec/training/export.py": "written and read again, in tests/spec/training/test_run.py",
    "spec/training/layers.py": "inside students, in test_eagle.py and test_draft_student.py",
    "spec/training/student.py": "through the students, in tests/spec/training/test_eagle.py",
    "spec/training/target.py": "plain records and protocols, filled in tests/engine/test_teacher.py",
    "spec/training/trainer.py": "in whole runs, killed and not, in tests/spec/training/test_run.py",
    "server/template_environment.py": "through ChatTemplate, in tests/server/test_chat_template.py",
    "spec/eagle.py": "against the layer it is trained as, in tests/spec/training/test_eagle.py",
}


def sources() -> list[Path]:
    """All Python files of the rooms, relative to the root."""
    return sorted(path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def module_name(path: Path) -> str:
    return ".".join(("paceline", *path.with_suffix("").parts)).removesuffix(".__init__")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))


def imports_of(path: Path) -> set[str]:
    return imported(tree(path), path)


def imported(module: ast.Module, path: Path, *, late_too: bool = True) -> set[str]:
    """Absolute names of the modules a file imports; with `from x import y` both x and x.y, as y may be a module.

    Without `late_too` only what runs when the module itself is imported: neither inside functions nor for types only.
    """
    found: set[str] = set()
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(module) if late_too else _eager(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return found


def _eager(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _eager(child)


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "paceline" and len(parts) > 1 else None


@pytest.mark.parametrize("path", sources(), ids=str)
def test_imports_point_one_way(path: Path) -> None:
    allowed = ROOMS[: ROOMS.index(path.parts[0]) + 1]
    wrong = {module for module in imports_of(path) if (room := room_of(module)) is not None and room not in allowed}
    assert not wrong, f"{path} may import {', '.join(allowed)} and imports {', '.join(sorted(wrong))}"


@pytest.mark.parametrize("path", sources(), ids=str)
def test_imports_are_relative_inside_a_folder_and_absolute_across_rooms(path: Path) -> None:
    package = ".".join(("paceline", *path.parts[:-1]))
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom):
            own = node.level == 0 and (node.module or "").rpartition(".")[0] == package
            assert not own, f"{path}:{node.lineno} imports its neighbour {node.module} by the absolute name"
            assert node.level < len(path.parts), f"{path}:{node.lineno} leaves its room by a relative import"
        elif isinstance(node, ast.Import):
            bare = {alias.name.split(".")[0] for alias in node.names} & set(BARE_NAMES)
            assert not bare, f"{path}:{node.lineno} imports {bare} without paceline"


def test_the_reader_of_imports_sees_every_form() -> None:
    """The checks of this file are as good as that function."""
    text = """
import torch.nn as nn
from . import weights
from .rope import table
from .. import request
from ..errors import ModelError
from paceline.kernels.embed import embed
def late():
    import triton
if TYPE_CHECKING:
    import gguf
"""
    path = Path("engine/model/decoder.py")
    eager = imported(ast.parse(text), path, late_too=False)
    assert eager == {
        "torch.nn",
        "paceline.engine.model",
        "paceline.engine.model.weights",
        "paceline.engine.model.rope",
        "paceline.engine.model.rope.table",
        "paceline.engine",
        "paceline.engine.request",
        "paceline.engine.errors",
        "paceline.engine.errors.ModelError",
        "paceline.kernels.embed",
        "paceline.kernels.embed.embed",
    }
    assert imported(ast.parse(text), path) - eager == {"triton", "gguf"}
    assert "paceline.spec.tree" in imported(ast.parse("from . import tree"), Path("spec/__init__.py"))


def test_spec_never_imports_the_engine_and_nobody_imports_transformers() -> None:
    """transformers costs seconds at start-up; the tests use it as a second opinion."""
    for path in sources():
        found = imports_of(path)
        assert path.parts[0] != "spec" or not any(room_of(module) == "engine" for module in found), path
        assert not any(module.split(".")[0] == "transformers" for module in found), path


@pytest.mark.parametrize("module", TENSOR_FREE)
def test_the_books_name_no_tensor_library(module: str) -> None:
    """Directly or through other modules of ours, at import or later."""
    paths = {module_name(path): path for path in sources()}
    reached, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        for other in imports_of(paths[name]):
            assert other.split(".")[0] not in HEAVY, f"{module} reaches {other} through {name}"
            if other in paths and other not in reached:
                reached.add(other)
                waiting.append(other)


def loaded_after(statement: str) -> set[str]:
    """Top-level names in sys.modules of a fresh process after a statement."""
    code = f"import sys; {statement}; print(*{{name.split('.')[0] for name in sys.modules}})"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("module", [*TENSOR_FREE, "paceline.server.cli"])
def test_light_modules_load_without_heavy_libraries(module: str) -> None:
    assert not loaded_after(f"import {module}") & set(HEAVY)


def test_the_whole_server_loads_without_heavy_libraries() -> None:
    assert not loaded_after("import paceline.server.cli, paceline.server.serving, paceline.server.service") & set(HEAVY)


def test_only_references_import_torch_with_themselves() -> None:
    """`import torch` takes 1.6 s, more than all the rest of a start: the native backend does without."""
    eager = {
        str(path)
        for path in sources()
        if any(module.split(".")[0] in HEAVY for module in imported(tree(path), path, late_too=False))
    }
    assert not {path for path in eager if not _is_of_tensors(path)} - set(LOADS_TORCH)
    assert set(LOADS_TORCH) <= eager, "an exception that is needed no more"


def _is_of_tensors(path: str) -> bool:
    """Loaded with a backend that computes with torch or Triton, and never without."""
    return path.endswith(("reference.py", "triton_impl.py")) or path.startswith("kernels/gpu/")


@pytest.mark.parametrize("kind", ["gguf", "bfloat16 folder"])
def test_a_native_engine_runs_without_torch(kind: str, tmp_path: Path) -> None:
    """A fresh process opens a model, builds its engine and answers a request of every kind of sampling."""
    model = tiny_models.make_folder(tmp_path / "tiny", "smollm2")
    if kind == "gguf":
        model = tiny_models.write_gguf(model, tmp_path / "tiny.gguf")
    else:
        tensors = {name: tensor.bfloat16() for name, tensor in tiny_models.load_tensors(model).items()}
        save_file(tensors, model / "model.safetensors")
    try:
        isa.load()
    except isa.NativeUnavailableError as error:
        pytest.skip(str(error))
    code = f"""
import sys
from pathlib import Path
from paceline.engine.config import EngineConfig
from paceline.engine.request import Request, SamplingParams
from paceline.server.service import Service
service = Service.build(Path({str(model)!r}), Path({str(tmp_path / "cache")!r}), EngineConfig(device="cpu"), "tiny")
engine = service.streams.loop.engine
tokens = []
for number, sampling in enumerate(({{}}, {{"temperature": 0.0}}, {{"presence_penalty": 0.5, "logprobs": 3}})):
    engine.submit(Request(id=str(number), prompt=(1, 2, 3), sampling=SamplingParams(max_tokens=4, seed=1, **sampling)))
while engine.has_work:
    engine.step(lambda deltas: tokens.extend(token for delta in deltas for token in delta.tokens))
assert len(tokens) == 12, tokens
assert not {{"torch", "transformers"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", BARE_NAMES)
def test_bare_names_are_not_importable_here(name: str) -> None:
    assert importlib.util.find_spec(name) is None


def test_bare_names_are_not_importable_from_console_scripts(tmp_path: Path) -> None:
    """The script is the one pip writes for `paceline`, with another body; it runs in the checkout as `make` does."""
    script = Path(sys.executable).with_name("paceline")
    assert script.is_file(), "paceline is not installed; run `make test`"
    interpreter = script.read_text(encoding="utf-8").splitlines()[0]
    probe = tmp_path / "probe"
    probe.write_text(
        f"{interpreter}\nimport importlib.util, paceline.server.cli\n"
        f"print([name for name in {BARE_NAMES!r} if importlib.util.find_spec(name)])\n",
        encoding="utf-8",
    )
    probe.chmod(0o755)
    result = subprocess.run([probe], cwd=ROOT, capture_output=True, text=True, check=True, env=dict(os.environ))
    assert result.stdout == "[]\n"


def test_no_file_pulls_the_checkout_onto_the_path() -> None:
    assert not (ROOT / "conftest.py").exists()
    assert not list((ROOT / "tests").rglob("__init__.py"))
    assert not (ROOT / "__init__.py").exists()


def test_files_are_short() -> None:
    kernels = sorted(path.relative_to(ROOT) for path in (ROOT / "kernels/native/src").iterdir())
    page = sorted(path.relative_to(ROOT) for path in (ROOT / "web/src").rglob("*.ts*"))
    assert page
    paths = [*sources(), *kernels, *page]
    lengths = {str(path): len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in paths}
    too_long = {path: n for path, n in lengths.items() if n > LONGER_FILES.get(path, (LINES, ""))[0]}
    assert not too_long
    stale = [path for path in LONGER_FILES if lengths.get(path, 0) <= LINES]
    assert not stale, f"{stale} need no exception any more"


def test_every_module_has_a_test_file() -> None:
    """room/…/module.py is tested in tests/room/…/test_module.py, a folder as a whole in tests/room/…/test_folder.py."""
    missing = [
        str(path) for path in sources() if _has_code(path) and str(path) not in TESTED_ELSEWHERE and not _has_test(path)
    ]
    assert not missing
    existing = {str(path) for path in sources()}
    stale = [path for path in TESTED_ELSEWHERE if path not in existing or _has_test(Path(path))]
    assert not stale, f"{stale} need no exception any more"


def _has_test(path: Path) -> bool:
    return any((ROOT / candidate).is_file() for candidate in _test_files(path))


def _test_files(path: Path) -> list[Path]:
    folder = Path("tests", *path.parts[:-1])
    own = folder / f"test_{path.stem}.py"
    of_folder = folder.with_name(f"test_{folder.name}.py") if len(path.parts) > 2 else own
    return [own, of_folder]


def _has_code(path: Path) -> bool:
    """More than imports, names for export, and docstrings."""
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in ast.walk(tree(path)))
