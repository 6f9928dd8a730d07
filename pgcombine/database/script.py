"""The SQL file that makes pgcombine's schema or upgrades it, for ``pgcombine.schema.upgrade`` and for administrators.

It has no psql commands and no variables, so that any client and any migration tool can apply it. No connection is
needed to make it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import metadata

from pgcombine.database import sqlfiles


def upgrade_file(revisions: Mapping[str, str]) -> str:
    """Return the file. ``revisions`` has the statements of each revision, in their order."""
    values = {
        "version": metadata.version("pgcombine"),
        "head": list(revisions)[-1],
        "known": f"{{{','.join(revisions)}}}",
        "lock": sqlfiles.query("upgrade_lock").replace("{create}", "true"),
        "baseline": sqlfiles.baseline_digest(),
        "foreign_objects": sqlfiles.query("foreign_objects"),
        "locks": sqlfiles.query("upgrade_locks"),
        "revisions": "\n".join(
            f"    if _steps < {number} then\n{_step(text)}\n    end if;"
            for number, text in enumerate(revisions.values(), 1)
        ),
        "steps": "\n".join([_step(sqlfiles.query("set_aside")), *map(_apply, _steps(list(revisions)[-1]))]),
    }
    text = sqlfiles.query("upgrade_file")
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value.strip("\n"), 1)
    return text


def _step(text: str) -> str:
    return f"    execute $pgcombine_step$\n{text.strip()}\n$pgcombine_step$;"


def _apply(text: str) -> str:
    return f"    perform pg_temp.apply($pgcombine_step$\n{text.strip()}\n$pgcombine_step$);"


def _steps(head: str) -> Iterator[str]:
    yield "set local check_function_bodies = off"  # functions may refer to functions that are created later
    yield from sqlfiles.steps()
    yield ";\n".join(sqlfiles.comments())
    yield sqlfiles.query("upgrade_end").replace("{head}", head).replace("{digest}", sqlfiles.digest())
