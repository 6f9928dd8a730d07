"""Alembic's environment. It runs the revisions on the connection that ``pgcombine.schema`` passes in.

For ``pgcombine db upgrade --sql`` it writes the revisions' statements to the configuration's output buffer instead. So
an upgrade must be SQL alone: it may not read the database by Python.

There is no ``alembic.ini`` and no database address here: ``pgcombine db upgrade`` runs the revisions. The caller owns
the transaction, so that revisions and repeatable SQL commit together. Without a connection, RuntimeError is raised.
"""

from __future__ import annotations

from alembic import context

from pgcombine.database import script

VERSION_TABLE = "schema_version"
SCHEMA = "pgcombine"


class Written:
    """What a revision has in place of a connection when its statements are to be written."""

    def exec_driver_sql(self, statement: str, execution_options: object = None) -> None:
        """Write the statement as it is."""
        context.get_context().impl.static_output(script.statement(statement).rstrip("\n"))


connection = context.config.attributes.get("connection")
offline = context.is_offline_mode()
if connection is None and not offline:
    raise RuntimeError("the pgcombine revisions run through 'pgcombine db upgrade', which passes a connection")

context.configure(
    connection=connection,
    dialect_name="postgresql",
    version_table=VERSION_TABLE,
    version_table_schema=SCHEMA,
    transactional_ddl=not offline,  # the file has its transaction already
)
if offline:
    context.get_context().impl.connection = Written()
with context.begin_transaction():
    context.run_migrations()
