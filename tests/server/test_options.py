from __future__ import annotations

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from paceline.server.options import parse_concurrency, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("1073741824", 2**30),
        ("512B", 512),
        ("512MB", 512 * 10**6),
        ("512mb", 512 * 10**6),
        ("2GiB", 2 * 2**30),
        ("2G", 2 * 2**30),
        (" 1.5 KiB ", 1536),
        ("0.5TB", 5 * 10**11),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@given(st.integers(1, 2**50))
def test_bytes_stand_for_themselves(size: int) -> None:
    assert parse_size(str(size)) == size


@pytest.mark.parametrize("text", ["", "GB", "-1", "1PB", "3Q", "1,5GB", "nan", "1e9", "12 34", "0", "0.1B"])
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"write (it|a size) like 512MB"):
        parse_size(text)


def test_concurrency_is_a_list_of_positive_numbers() -> None:
    assert parse_concurrency("1, 4,8") == (1, 4, 8)
    for text in ("", "0", "1,", "a", "1;2", "-1", "1.5", "²"):
        with pytest.raises(typer.BadParameter, match="like 1,4,8"):
            parse_concurrency(text)
