"""``pgcombine db upgrade|check|roles|remove`` and ``pgcombine dsn``."""

from __future__ import annotations

from typing import Annotated

import typer

from pgcombine import config, schema
from pgcombine.cli.options import (
    Dsn,
    Json,
    Yes,
    confirm,
    counted,
    described,
    group,
    print_json,
    print_warning,
    report,
    resolve_dsn,
    start_embedded,
)
from pgcombine.database.connect import connect
from pgcombine.errors import SchemaError
from pgcombine.queue import status as figures
from pgcombine.worker import rights

db = group("The schema that pgcombine keeps in a database.")


@db.command()
def upgrade(
    as_sql: Annotated[
        bool, typer.Option("--sql", help="Only print the SQL file that does so in any database, without a connection.")
    ] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Make the schema, or bring it to this program's version; pending updates stay.

    Example: pgcombine db upgrade --dsn postgresql://owner@db/app
    """
    if as_sql:
        if as_json:
            raise typer.BadParameter(
                "can't be used with --sql, which prints SQL: leave one of them out", param_hint="--json"
            )
        typer.echo(schema.upgrade_sql().encode(), nl=False)  # UTF-8, regardless of the terminal's encoding
        return
    database = _database(dsn)
    try:
        schema.check(database)
        state = "current"
    except SchemaError:
        state = "upgraded"
    # an upgrade of a current schema recreates each queue's functions and views
    revision = schema.upgrade(database, warn=print_warning)
    if state == "current" and not as_json:
        typer.echo(f"already at revision {revision}")
    else:
        _report(revision, state, as_json)


@db.command()
def check(dsn: Dsn = None, as_json: Json = False) -> None:
    """Check that the schema is of this program's version. If not, say what to do, and exit with status 1.

    Example: pgcombine db check && pgcombine worker
    """
    _report(schema.check(_database(dsn)), "current", as_json)


@db.command()
def roles(
    prefix: Annotated[str, typer.Option(help="Prefix of the roles' names.")] = "pgcombine_",
    make: Annotated[bool, typer.Option("--make", help="Create the roles; needs the right to create roles.")] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Print, or with --make run, the SQL that creates a role for each right on all queues.

    Example: pgcombine db roles | psql app
    """
    with connect(resolve_dsn(dsn)) as connection:
        found = rights.make_roles(connection, prefix) if make else rights.roles(connection, prefix)
    if as_json:
        print_json([role._asdict() for role in found])
        return
    for role in found:
        if make:
            typer.echo(f"{role.role}: {'made' if role.new else 'was there'}, has the right {role.right}")
        else:
            typer.echo("\n".join(f"{statement};" for statement in role.statements))


@db.command()
def remove(
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Remove it even if updates are pending or quarantined, or another version made it."
        ),
    ] = False,
    yes: Yes = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Remove the schema with all queues and values; if the command is interrupted, run it again.

    Example: pgcombine db remove --yes
    """
    database = _database(dsn)
    if not yes:
        confirm(f"all that pgcombine keeps in this database will be lost: {_contents(database)}", yes=yes)
    schema.remove(database, force=force)
    report({"state": "removed"}, "removed", as_json)


def _contents(database: str) -> str:
    with connect(database) as connection:
        try:
            schema.check_connection(connection)
        except SchemaError:
            return "a schema that isn't of this version"
        found = figures.contents(connection)
    queues = ", ".join(one.queue for one in found)
    return f"{counted(len(found), 'queue')} ({queues}) with {described(found)}" if found else "no queues"


def show_dsn(dsn: Dsn = None, as_json: Json = False) -> None:
    """Print the connection string of the chosen database, for psql. The embedded server is started if necessary.

    Example: psql "$(pgcombine dsn)"
    """
    chosen = resolve_dsn(dsn)
    report({"dsn": chosen}, chosen, as_json)


def _database(dsn: str | None) -> str:
    """Return the DSN as resolve_dsn does, but without making or upgrading an embedded server's schema."""
    given = config.given_dsn(dsn)
    return start_embedded() if given is None else given


def _report(revision: str, state: str, as_json: bool) -> None:
    report({"revision": revision, "state": state}, f"{state}: revision {revision}", as_json)
