"""Random expressions as keys, values and filters of rollups mean what they mean in a query, under every setting."""

from __future__ import annotations

import random
from collections.abc import Callable

import psycopg
import pytest

COLUMNS = "id int, k text, t text, v int, a int[], d date, at timestamptz, b bytea, f float8, done boolean"
ROWS = """
insert into pgcombine_source
select i, (array['a', 'it''s', '{keys}', e'a\\_b', 'B', null])[1 + i % 6],
       (array['x', 'a_1', '{', e'two\nlines'])[1 + i % 4], i % 5 - 2, array[i % 3, null, i % 2],
       date '2026-01-01' + i % 3, timestamptz '2025-12-31 22:00Z' + i * interval '1 h',
       decode(lpad(to_hex(i), 4, '0'), 'hex'), i / 10.0, (array[true, false, null])[1 + i % 3]
from generate_series(1, 24) i
"""
# A part in capitals stands for a random expression of type integer, text or boolean.
FORMS = {
    "I": (
        *("v", "id % 7", "length(TEXT)", "a[1]", "(a)[2]", "(array[1, 2, 3])[2]", "-(INT)", "abs(INT) % 7"),
        *("case when BOOL then INT else INT end", "case INT when 1 then INT when 2 then 0 end", "coalesce(INT, 4)"),
        *("(row(INT, 3) < row(3, INT))::int", "strpos(TEXT, '{keys}')", "cast(INT as bigint)::int", "(BOOL)::int"),
        *("extract(year from d)::int", "greatest(INT, 2)", "cardinality(array[INT, 2])", "nullif(INT, 3)"),
    ),
    "T": (
        *(
            "k",
            "t",
            "'it''s'",
            "'{keys}'",
            "'{pgcombine_e1}'",
            r"'a\b'",
            r"'it''s a\b'",
            r"E'a\\b\n'",
            "$q$x{y}'$q$",
            "'two\nlines'",
        ),
        *("lower(TEXT)", "TEXT || TEXT", "case when BOOL then TEXT else TEXT end", "(TEXT)::varchar(20)", "md5(TEXT)"),
        *('(TEXT collate "C")', "coalesce(TEXT, '')", "substr(TEXT, 1, 3)", "(INT)::text", "replace(TEXT, '{', '}')"),
        *("/* a comment, {keys} */ TEXT", "TEXT -- {keys}, '\n", "case TEXT when 'a' then 'A' else TEXT end", '"t"'),
    ),
    "B": (
        *(
            "done",
            "not (BOOL)",
            "(BOOL and BOOL)",
            "(BOOL or BOOL)",
            "INT < INT",
            r"TEXT like 'a\_%'",
            "TEXT in ('a', 'B')",
        ),
        *(
            "TEXT is distinct from TEXT",
            "TEXT is null",
            "(INT, TEXT) = (INT, TEXT)",
            "INT between 0 and 5",
            "INT = any (a)",
        ),
        *("case when BOOL then true else BOOL end", "TEXT ~ '^[a{]'", "at >= timestamptz '2026-01-01 00:00Z'"),
        *(r"b <> '\x0007'::bytea", "f > 0.30000000000000004::float8", "d = date '2026-01-02'", "(BOOL) is not true"),
    ),
}
SETTINGS = {  # of the sessions that create, write and verify
    "standard_conforming_strings": "off",
    "escape_string_warning": "off",
    "quote_all_identifiers": "on",
    "datestyle": "SQL, DMY",
    "timezone": "Asia/Kathmandu",
    "bytea_output": "escape",
    "extra_float_digits": "-3",
    "intervalstyle": "iso_8601",
}


def expression(chance: random.Random, kind: str, depth: int = 2) -> str:
    """A random expression of the kind I (integer), T (text) or B (boolean)."""
    leaf = not depth
    forms = [form for form in FORMS[kind] if not leaf or not any(part in form for part in ("INT", "TEXT", "BOOL"))]
    result = chance.choice(forms)
    for part in ("INT", "TEXT", "BOOL"):
        while part in result:
            result = result.replace(part, f"({expression(chance, part[0], depth - 1)})", 1)
    return result


@pytest.mark.parametrize("seed", range(14))
def test_random_expressions_mean_what_they_mean_in_a_query(conn: psycopg.Connection, seed: int) -> None:
    chance = random.Random(seed)
    key = expression(chance, "T", 1 + seed % 2)
    condition = expression(chance, "B") if seed % 3 else "true"
    values = [
        *(f"sum({expression(chance, 'I')}) as s{i}" for i in range(4)),
        *(f"max({expression(chance, 'T')}) as m{i}" for i in range(3)),
        *(f"count(*) filter (where {expression(chance, 'B')}) as c{i}" for i in range(4)),
        f"array_agg({expression(chance, 'I')} order by id) as a",
    ]
    conn.execute(f"create table pgcombine_source ({COLUMNS})".encode())
    columns = f"({key}\n) as key, {', '.join(values)}"
    query = f"select {columns} from pgcombine_source where ({condition}\n) and ({key}\n) is not null group by 1"  # noqa: S608

    def differences() -> list[tuple[object, ...]]:
        conn.execute("reset all")
        return conn.execute(
            f"(table pgcombine.r except all ({query})) union all (({query}) except all table pgcombine.r)".encode()
        ).fetchall()

    def set_others(names: Callable[[str], bool]) -> None:
        conn.execute("reset all")
        for name, value in SETTINGS.items():
            if names(name):
                conn.execute(f"set {name} = '{value}'".encode())

    set_others(lambda _: bool(seed % 2))
    conn.execute(
        "select pgcombine.create_rollup('r', 'pgcombine_source', array[%s], %s, %s, buckets => 1)",
        (f"{key}\nas key", values, condition),
    )
    conn.execute("call pgcombine.backfill('r')")
    for statement in (
        ROWS,
        "update pgcombine_source set v = v + 1, t = k, done = not done where id % 4 = 0",
        "delete from pgcombine_source where id % 5 = 0",
    ):
        conn.execute("reset all")
        set_others(lambda name: name != "standard_conforming_strings")  # which would change the meaning of the rows
        conn.execute(statement.encode())
        assert differences() == [], (key, values, condition)
        set_others(lambda _: True)
        conn.execute("call pgcombine.drain('r')")
        assert differences() == [], (key, values, condition)
        set_others(lambda _: not seed % 2)
        assert conn.execute("select problem from pgcombine.verify_rollup('r')").fetchall() == []
