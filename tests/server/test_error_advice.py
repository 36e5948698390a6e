"""Every error that the server can send is, on the page, a sentence that says what to do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "web" / "src" / "wire" / "errors.ts"
DEEDS = (
    "add|allow|ask|cancel|choose|close|connect|correct|create|delete|leave|let|make|open|resume|say|see|send|shorten|simplify|"
    "start|try|use|wait"
)
SAYS_WHAT_TO_DO = re.compile(rf"(?:[;:]|, or) (?:{DEEDS})\b")


def words(node: ast.expr) -> str:
    """The text of a message, with … for what is only known when it is sent; "" for what is no text."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(words(part) or "…" for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return words(left) + words(right)
    return ""


def errors_in(source: str) -> Iterator[tuple[str, str]]:
    """Code and message of each error that is made with both; the message is "" where it comes from elsewhere."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "code" and (code := words(keyword.value)):
                    yield code, max((words(value) for value in node.args), key=len, default="")
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if key is not None and words(key) == "code" and (code := words(value)):
                    yield code, ""


def server_errors() -> list[tuple[str, str]]:
    paths = [path for room in ("engine", "server") for path in sorted((ROOT / room).rglob("*.py"))]
    return sorted({error for path in paths for error in errors_in(path.read_text())})


def advised_codes() -> set[str]:
    return set(re.findall(r"^ {4}(\w+):", TABLE.read_text().partition("Object.entries(")[2].partition("})")[0], re.M))


@pytest.mark.parametrize(("code", "message"), server_errors())
def test_an_error_says_what_to_do_or_the_page_does(code: str, message: str) -> None:
    assert code in advised_codes() or SAYS_WHAT_TO_DO.search(message), (
        f"{code}: {message!r} tells nobody what to do; say it there behind a semicolon, or in {TABLE.name}"
    )


def test_the_page_advises_on_nothing_that_no_server_says() -> None:
    assert advised_codes() - {code for code, _ in server_errors()} == set()


def test_the_reader_of_errors_sees_every_form() -> None:
    source = """
raise ApiError(400, f"{name!r} is odd; " + "use another.", code="odd")
fields.refuse("key", "is missing.", code="missing")
raise ApiError(400, str(error), code="far")
body = {"code": "plain", "message": message}
other = Frame(code=1000)
"""
    assert list(errors_in(source)) == [
        ("odd", "… is odd; use another."),
        ("missing", "is missing."),
        ("far", ""),
        ("plain", ""),
    ]
    assert SAYS_WHAT_TO_DO.search("… is odd; use another.")
    assert not SAYS_WHAT_TO_DO.search("Nothing is of use.")
