from __future__ import annotations

import gzip

import pytest

from paceline.server.page_files import Answer, HeldFile, takes_gzip

TEXT = b"const answer = 42;\n" * 40
FIXED = {"x-fixed": "yes"}


def asked(file: HeldFile, **headers: str) -> Answer:
    return file.answer({name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    ("accepted", "taken"),
    [
        ("gzip", True),
        ("gzip, deflate, br, zstd", True),
        ("br;q=1.0, GZIP;q=0.8, *;q=0.1", True),
        ("x-gzip", True),
        ("*", True),
        ("gzip;q=0.001", True),
        ("", False),
        ("br", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip; Q=0.000, *", False),
        ("*;q=0", False),
        ("gzipped", False),
    ],
)
def test_gzip_is_sent_to_those_who_take_it(accepted: str, taken: bool) -> None:
    assert takes_gzip(accepted) is taken
    answer = asked(HeldFile(TEXT, ".js", FIXED), accept_encoding=accepted)
    assert answer.status == 200
    assert answer.headers.get("content-encoding") == ("gzip" if taken else None)
    assert (gzip.decompress(answer.body) if taken else answer.body) == TEXT
    assert len(answer.body) < len(TEXT) or not taken
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["vary"] == "accept-encoding"
    assert answer.headers["x-fixed"] == "yes"


def test_what_is_compressed_already_is_sent_as_it_is() -> None:
    answer = asked(HeldFile(TEXT, ".woff2", FIXED), accept_encoding="gzip")
    assert answer.body == TEXT
    assert not {"content-encoding", "vary"} & set(answer.headers)


@pytest.mark.parametrize("accepted", ["", "gzip"])
@pytest.mark.parametrize("known", ["{}", "W/{}", '"other", {}', "*"])
def test_a_client_that_has_it_gets_no_body(accepted: str, known: str) -> None:
    file = HeldFile(TEXT, ".css", FIXED)
    first = asked(file, accept_encoding=accepted)
    answer = asked(file, accept_encoding=accepted, if_none_match=known.format(first.headers["etag"]))
    assert (answer.status, answer.body) == (304, b"")
    assert answer.headers == {**FIXED, "vary": "accept-encoding", "etag": first.headers["etag"]}


def test_a_tag_stands_for_the_bytes_that_are_sent() -> None:
    files = [HeldFile(TEXT, ".js", FIXED), HeldFile(TEXT + b"\n", ".js", FIXED)]
    tags = [asked(file, accept_encoding=accepted).headers["etag"] for file in files for accepted in ("", "gzip")]
    assert len(set(tags)) == 4
    assert [asked(files[0], if_none_match=tag).status for tag in tags] == [304, 200, 200, 200]
    assert asked(HeldFile(TEXT, ".js", {}), accept_encoding="gzip").headers["etag"] == tags[1]
