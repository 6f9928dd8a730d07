"""What COPY writes as csv is read back as it was, with nulls and empty texts."""

from __future__ import annotations

import io
import random

import psycopg

from pgcombine.cli.files import read_rows

COLUMNS = ["a", "b", "c"]


def test_csv_of_copy_is_read_back(conn: psycopg.Connection) -> None:
    chance = random.Random(7)

    def text() -> str | None:
        return chance.choice([None, "", "".join(chance.choices(',"a\n\r\\', k=chance.randrange(1, 6)))])

    rows = [{name: text() for name in COLUMNS} for _ in range(5000)]
    with conn.transaction():
        conn.execute("create temporary table t (place serial, a text, b text, c text) on commit drop")
        conn.cursor().executemany("insert into t (a, b, c) values (%(a)s, %(b)s, %(c)s)", rows)
        with conn.cursor().copy(
            "copy (select a, b, c from t order by place) to stdout with (format csv, header)"
        ) as out:
            written = b"".join(map(bytes, out)).decode()
    read = read_rows(io.StringIO(written, newline=""), "csv", "q", COLUMNS, set())
    assert [row for _, row in read] == rows
