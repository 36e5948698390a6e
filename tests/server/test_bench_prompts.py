from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.engine.errors import ConfigError
from paceline.server.bench_prompts import Prompt, load_prompts, spread


def write(folder: Path, text: str) -> Path:
    path = folder / "prompts.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_reads_every_kind_of_line(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '{"question_id": 81, "category": "writing", "turns": ["One", "Two", "Three"]}\n'
        "\n"
        '{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}], "id": "m"}\n'
        '{"prompt": "P"}\n'
        "Plain words\n",
    )
    assert load_prompts(path) == [
        Prompt("81", "writing", ({"role": "user", "content": "One"},), ("Two", "Three")),
        Prompt("m", "", ({"role": "system", "content": "S"}, {"role": "user", "content": "U"})),
        Prompt("4", "", ({"role": "user", "content": "P"},)),
        Prompt("5", "", ({"role": "user", "content": "Plain words"},)),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no prompts"),
        ("\n \n", "holds no prompts"),
        ('Fine\n{"prompt": ', "line 2: not valid JSON"),
        ('{"question": "?"}', "line 1: needs 'turns'"),
        ('{"turns": []}', "line 1: needs 'turns'"),
        ('{"turns": ["a", 3]}', "line 1: needs 'turns'"),
        ('{"messages": []}', "line 1: needs 'turns'"),
        ('{"prompt": ""}', "line 1: needs 'turns'"),
    ],
)
def test_refuses_what_is_no_prompt(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_prompts(write(tmp_path, text))


def test_refuses_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_prompts(binary)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_prompts(tmp_path / "missing")


def prompts_of(sizes: dict[str, int]) -> list[Prompt]:
    return [Prompt(f"{name}{i}", name, ()) for name, size in sizes.items() for i in range(size)]


def test_spread_is_even_over_and_within_categories() -> None:
    chosen = spread(prompts_of({"a": 100, "b": 4, "c": 1}), 9)
    assert Counter(prompt.category for prompt in chosen) == {"a": 4, "b": 4, "c": 1}
    assert [prompt.id for prompt in chosen if prompt.category == "a"] == ["a0", "a25", "a50", "a75"]


@given(
    st.dictionaries(st.sampled_from("abcde"), st.integers(1, 30), min_size=1),
    st.one_of(st.none(), st.integers(1, 200)),
)
def test_spread_keeps_number_order_and_identity(sizes: dict[str, int], limit: int | None) -> None:
    prompts = prompts_of(sizes)
    chosen = spread(prompts, limit)
    positions = [prompts.index(prompt) for prompt in chosen]
    assert len(chosen) == min(limit or len(prompts), len(prompts))
    assert positions == sorted(set(positions))
    counts = Counter(prompt.category for prompt in chosen)
    unfinished = [counts[name] for name, size in sizes.items() if counts[name] < size]
    assert all(count >= max(counts.values()) - 1 for count in unfinished)
