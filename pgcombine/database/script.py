"""The statements that ``pgcombine.schema.upgrade`` executes, and a file for psql that does the same.

The file is for an administrator. It has no psql commands and no variables, so other clients can apply it, too. No
connection is needed to make the file.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgcombine.database import sqlfiles

_HEADER = """\
-- The schema of pgcombine at revision {head}, for {database}.
-- Apply it as the role that is to own pgcombine:
--   psql -X -v ON_ERROR_STOP=1 -f FILE
-- The file is one transaction. It fails in any other database, and then changes nothing.
begin transaction isolation level read committed, read write;
set local client_encoding = 'UTF8';
set local standard_conforming_strings = on;

"""


def upgrade_file(revisions: str, *, start: str | None, head: str) -> str:
    """Return the file that takes a database from revision ``start`` (None: a new one) to ``head``.

    ``revisions`` are the statements of the revisions between, each with its semicolon.
    """
    database = "a new database" if start is None else f"a database at revision {start}"
    parts = [
        _HEADER.format(head=head, database=database),
        statement(sqlfiles.query("upgrade_lock").replace("{create}", str(start is None))),
        statement(
            sqlfiles.query("upgrade_start")
            .replace("{start}", start or "")
            .replace("{baseline}", sqlfiles.baseline_digest())
        ),
        statement(
            sqlfiles.query("upgrade_foreign").replace("{foreign_objects}", sqlfiles.query("foreign_objects").strip())
        ),
        statement(sqlfiles.query("upgrade_locks")),
        upgrade(revisions, start=start),
        "commit;\n",
    ]
    return "".join(parts)


def upgrade(revisions: str, *, start: str | None) -> str:
    """Return what an upgrade executes once it has its locks. Parameters are as for :func:`upgrade_file`."""
    parts = [
        revisions,
        # function bodies may refer to functions that are created later
        statement("set local check_function_bodies = off"),
        statement(sqlfiles.query("set_aside")),
        *map(statement, _steps(replace=start is not None)),
        *map(statement, sqlfiles.comments()),
        statement(sqlfiles.query("upgrade_end").replace("{digest}", sqlfiles.digest())),
    ]
    return "".join(parts)


def statement(text: str) -> str:
    """Return the text of one or more statements with a semicolon and an empty line after it."""
    text = text.strip()
    if text.endswith(";"):
        return f"{text}\n\n"
    return f"{text}\n;\n\n" if "--" in text.rpartition("\n")[2] else f"{text};\n\n"


def _steps(*, replace: bool) -> Iterator[str]:
    for text in sqlfiles.steps():
        names = sqlfiles.made(text)
        if replace and names:
            file = sqlfiles.query("upgrade_replace")
            yield file.replace("{names}", f"{{{','.join(names)}}}").replace("{statements}", text)
        else:
            yield text
