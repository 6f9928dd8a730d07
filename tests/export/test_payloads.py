"""The payload of a write to several servers becomes lines for COPY, unless one of its elements is quoted."""

from __future__ import annotations

from uuid import uuid4

import pytest

from pgcombine.handoff.encoding import Definition, encode, lines

DEFINITION = Definition(uuid4(), ("word", "n"), 1, {"n": "1"})


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("fluo", 1), ("NULLS", -2)], b"fluo\t1\nNULLS\t-2\n"),
        ([("fluo", None), {"word": "b-c"}], b"fluo\t\\N\nb-c\t1\n"),
        ([("sp ark", 1)], None),
        ([("null", 1)], None),
        ([("", 1)], None),
        ([("a,b", 1)], None),
        ([("a\\b", 1)], None),
        ([("\t", 1)], None),
        ([("é", 1)], None),
    ],
)
def test_plain_rows_become_copy_lines(rows: list[object], expected: bytes | None) -> None:
    assert lines(encode("wc", DEFINITION, rows)[0]) == expected


def test_no_rows_become_no_lines() -> None:
    assert lines("{}") == b""
