"""The README's commands exist and are the ones that CI runs; its SQL does what it says."""

from __future__ import annotations

import itertools
import re
import shlex
from itertools import takewhile

import psycopg
import pytest
from support.queues import make_queue, one
from support.readme import README, command, commands
from support.verbs import verbs

from pgcombine.database import sqlfiles


@pytest.mark.parametrize("ending", ["/pgcombine phrasecount", "/pytest -n logical"])
def test_commands_need_only_python_and_pip(ending: str) -> None:
    programs = [shlex.split(part)[0] for part in command(ending).split("&&")]
    assert programs[:2] == ["python3", "python3"]
    assert programs[2] == f".venv/bin/{ending.split()[0].lstrip('/')}"
    assert len(programs) == 3


def commands_in_readme() -> list[tuple[str, ...]]:
    """The words of each ``pgcombine`` command in the README's shell blocks, up to the first option."""
    found = set()
    for line in commands():
        for part in re.split(r"&&|\||;", line):
            words = shlex.split(part, comments=True)
            if words and words[0].rpartition("/")[2] == "pgcombine":
                found.add(tuple(takewhile(lambda word: not word.startswith("-"), words[1:])))
    return sorted(found)


def test_verbs_in_the_readme_exist() -> None:
    there = verbs()
    groups = {verb[:1] for verb in there if len(verb) > 1}
    for words in commands_in_readme():
        # What follows a verb is its arguments; what follows a group is a verb.
        verb = words[:2] if words[:1] in groups else words[:1]
        assert not verb or verb in there, f"README: pgcombine {' '.join(words)}"


def table(heading: str) -> list[list[str]]:
    """The cells of the rows of the first table after a heading or words of its own."""
    text = README.read_text(encoding="utf-8").partition(heading)[2]
    lines = itertools.takewhile(
        lambda line: line.startswith("|"), itertools.dropwhile(lambda line: not line.startswith("|"), text.splitlines())
    )
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines][2:]


def test_sql_api_is_there(conn: psycopg.Connection) -> None:
    """Each function of the table, and each option of create_queue; and no option is left out."""
    make_queue(conn)  # it has a function of its own
    rows = table("## SQL API")
    calls = {name for call, _ in rows for name in re.findall(r"pgcombine\.(\w+)\(", call)}
    assert {"create_queue", "combine", "drop_queue"} <= calls
    missing = [name for name in calls if one(conn, "select to_regproc(%s) is null", f"pgcombine.{name}")]
    assert missing == []
    options = one(conn, "select proargnames[4:] from pg_proc where oid = 'pgcombine.create_queue'::regproc")
    assert set(re.findall(r"`(\w+)`", rows[0][1])) == set(options)


def test_every_combiner_is_in_the_table(conn: psycopg.Connection) -> None:
    told = {name for row in table("A *combiner* says") for name in re.findall(r"`([a-z_]+)(?:\(at\))?`", row[0])}
    there = {name for (name,) in conn.execute("select combiner from pgcombine.combiner").fetchall()}
    assert there - told == set()
    # what each does with nulls is told where they are defined
    nulls = dict(sqlfiles.repeatables())["combiners/builtin.sql"]
    assert all(name in nulls.partition("Templates")[0] for name in there - {"python"})
    assert "-- Nulls. " in nulls


def test_sql_example_runs(dsn: str) -> None:
    (block,) = re.findall(r"^```sql\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    rows = {}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in re.sub(r"--.*", "", block).split(";"):
            if not statement.strip():
                continue
            while (cursor := connection.execute(statement)).description and "combine(" in statement:
                if not cursor.fetchall():  # until every bucket is combined
                    break
            else:
                rows[statement.split("where")[0].split()[-1]] = cursor.fetchall() if cursor.description else None
    assert rows["pgcombine.wc_current"] == [("fluo", 2)]
    assert sorted(rows["pgcombine.wc_values"]) == [("fluo", 2), ("spark", 1)]
    assert sorted(rows["history"]) == [("fluo", None, 2), ("spark", None, 1)]
