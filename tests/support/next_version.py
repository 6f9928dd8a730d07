"""A made-up next version of pgcombine, to which tests upgrade: it has a second revision and different functions.

Inside ``with next_version():`` this process is the next version, and schemas made before are an older version's. In the
next version

- the table ``queue`` has a column ``rank``, which begins as the number of buckets; the new table ``ranked`` has the
  ranks, too; the table ``tick`` has a column ``later``
- the partitions of tables of values have the option ``parallel_workers = 0``
- ``regenerate`` has a second parameter with a default: beside the older function a call with one argument is ambiguous
- ``backlog`` returns another type, which ``create or replace`` can't change
- the function ``combine_sql`` is gone, and the function ``rank`` is new.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from pgcombine import schema
from pgcombine.database import sqlfiles

FIRST, NEXT = "0001", "0002"
_REVISION = '''
revision = "0002"
down_revision = "0001"

TABLES = """
    do $$
    declare
        _table regclass;
    begin
        for _table in
            select i.inhrelid
            from pgcombine.queue q
            join pg_inherits i on i.inhparent = format('pgcombine.%I', q.queue || '_values')::regclass
            order by 1
        loop
            execute format('alter table %s CHANGE', _table);
        end loop;
    end
    $$
"""
UPGRADE = (
    "alter table pgcombine.queue add column rank integer",
    "update pgcombine.queue set rank = buckets",
    "create table pgcombine.ranked (queue text primary key references pgcombine.queue on delete cascade, rank integer)",
    "alter table pgcombine.ranked enable row level security",
    "insert into pgcombine.ranked select queue, rank from pgcombine.queue",
    "alter table pgcombine.tick add column later integer",
    TABLES.replace("CHANGE", "set (parallel_workers = 0)"),
)

def upgrade():
    return UPGRADE

'''
_RANK = """\
-- pgcombine.rank(queue) → integer
-- Returns the rank of a queue.
create or replace function pgcombine.rank(queue text)
returns integer
language sql stable
begin atomic
    select q.rank from pgcombine.queue q where q.queue = rank.queue;
end;
"""
_CHANGES = {
    ".regenerate(queue text)\n": ".regenerate(queue text, why text default 'none')\n",
    "function pgcombine.backlog(queue text)\nreturns bigint": "function pgcombine.backlog(queue text)\nreturns numeric",
    "autovacuum_vacuum_scale_factor = 0.05)": "autovacuum_vacuum_scale_factor = 0.05, parallel_workers = 0)",
}


@contextmanager
def next_version() -> Iterator[None]:
    """Make this process the next version until the end of the block."""
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        migrations = Path(home) / "migrations"
        with resources.as_file(resources.files("pgcombine.migrations")) as directory:
            shutil.copytree(directory, migrations, ignore=shutil.ignore_patterns("__pycache__"))
        (migrations / "versions" / "0002_rank.py").write_text(_REVISION, encoding="utf-8")

        files = _files()
        patch.setattr(schema, "_revisions", lambda: ScriptDirectory(str(migrations)))
        patch.setattr(schema, "head", lambda: NEXT)
        patch.setattr(sqlfiles, "repeatables", lambda: files)
        patch.setattr(sqlfiles, "digest", lambda: "next")
        yield


def _files() -> list[tuple[str, str]]:
    files = dict(sqlfiles.repeatables())
    for old, new in _CHANGES.items():
        (path,) = (path for path, text in files.items() if old in text)
        files[path] = files[path].replace(old, new)
    assert files.pop("core/public/combine_sql.sql")
    # in the order in which the upgrade applies them
    public = [path for path in files if path.startswith("core/public/")]
    return [
        *((path, files[path]) for path in public),
        ("core/public/rank.sql", _RANK),
        *((path, text) for path, text in files.items() if path not in public),
    ]
