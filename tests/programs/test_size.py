"""The program ``size`` counts made-up sources and a database's functions correctly."""

from __future__ import annotations

from pathlib import Path

import psycopg

from .size.__main__ import functions, table
from .size.sources import Count, Tree

FILES = {
    "sql/core/internal/pass/plan.sql": (
        "-- pgcombine_internal.not_called()\nselect '{keys} {values} {keys}' -- {comment}\n"
    ),
    "sql/core/internal/pass/unused.sql": "{more}\n",
    "sql/core/internal/queue/named.sql": "raise exception 'x' using hint = 'select pgcombine.post_restore()';\n",
    "sql/rollup/internal/rollup_view.sql": "1\n2\n",
    "sql/handoff/internal/not_called.sql": "-- long: " + "x" * 90 + "\n",
    "sql/core/public/combine.sql": "select pgcombine_internal.plan() ;\nselect pgcombine_internal.named (1)\n",
    "sql/core/public/post_restore.sql": "\n",
    "sql/export/public/create_export.sql": "\n",
    "sql/core/triggers/wake.sql": "\n",
    "sql/queries/plan.sql": "\n\n\n\n",
    "pgcombine/worker/worker.py": (
        '"""Select a from this: a docstring."""\n'
        'A = "select * from pgcombine.one(%s, f(2))"\n'
        'B = "select a from pgcombine.queue"\n'
        'C = f"update {A} set x = 1"\n'
        'D = "set lock_timeout = 1"\n'
        'E = "with other functions"\n'
    ),
    "pgcombine/worker/rights.py": 'F = "select pgcombine_internal.f()"\n',
    "pgcombine/runtime/wakeup.py": "",
    "pgcombine/bench/load.py": 'G = "select 1 from x"\n',
    "tests/test_it.py": "1\n2\n3\n",
    "README.md": "two words",
    "pgcombine/docs/page.md": "three\nmore words",
}


def test_tree_counts_made_up_sources(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = Tree(tmp_path).counts()
    assert {name: count.number for name, count in found.items()} == {
        "SQL lines of core": 2 + 1 + 1 + 2 + 1 + 1,
        "files on the way of an update": 4 + 2,
        "lines on the way of an update": 2 + 1 + 2 + 1 + 6,
        "placeholders in a pass": 2,
        "stages of a pass": 1,
        "longest line of SQL": 99,
        "Python lines without bench": 7,
        "SQL literals in Python": 2,
        "lines of tests": 3,
        "words of the pages": 5,
    }
    assert [one.split(" ")[0] for one in found["SQL literals in Python"].parts] == [
        "pgcombine/worker/worker.py:3",
        "pgcombine/worker/worker.py:4",
    ]


def test_functions_are_those_of_both_schemas(conn: psycopg.Connection, dsn: str) -> None:
    before = functions(dsn)
    assert "pgcombine.backlog(text)" in before
    assert any(name.startswith("pgcombine_internal.") for name in before)
    conn.execute("create function public.mine() returns integer language sql return 1")
    conn.execute("create function pgcombine.another() returns integer language sql return 1")
    assert sorted(functions(dsn)) == sorted([*before, "pgcombine.another()"])


def test_table_has_a_column_for_each_version() -> None:
    assert table({"old": {"functions": Count(1351)}, ".": {"functions": Count(240)}}) == (
        "|  | old | . |\n| --- | --- | --- |\n| functions | 1,351 | 240 |"
    )
