"""Alembic's environment. It writes the statements of the revisions to the configuration's output buffer.

``pgcombine.schema`` executes them, or puts them into the file of ``pgcombine db upgrade --sql``. So a revision must be
SQL alone: it must not read the database from Python. There is no ``alembic.ini`` and no database address here.
Alembic's online mode raises RuntimeError.
"""

from __future__ import annotations

from alembic import context

VERSION_TABLE = "schema_version"
SCHEMA = "pgcombine"


class Written:
    """Stands in for the connection of a revision, and writes the statements instead of executing them."""

    def exec_driver_sql(self, statement: str, execution_options: object = None) -> None:
        """Write the statement to the output."""
        context.get_context().impl.static_output(statement.rstrip().removesuffix(";") + "\n;")


if not context.is_offline_mode():
    raise RuntimeError("Alembic can't run pgcombine's revisions on a database: run 'pgcombine db upgrade'")
context.configure(
    dialect_name="postgresql",
    version_table=VERSION_TABLE,
    version_table_schema=SCHEMA,
    transactional_ddl=False,  # the caller runs all statements in one transaction
)
context.get_context().impl.connection = Written()
with context.begin_transaction():
    context.run_migrations()
