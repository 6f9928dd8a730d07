"""Alembic's environment. It runs the revisions on the connection that ``pgcombine.schema`` passes in.

There is no ``alembic.ini`` and no database address here: ``pgcombine db upgrade`` runs the revisions. The caller owns
the transaction, so that revisions and repeatable SQL commit together. Without a connection, RuntimeError is raised.
"""

from __future__ import annotations

from alembic import context

VERSION_TABLE = "schema_version"
SCHEMA = "pgcombine"

connection = context.config.attributes.get("connection")
if connection is None:
    raise RuntimeError("the pgcombine revisions run through 'pgcombine db upgrade', which passes a connection")

context.configure(
    connection=connection,
    version_table=VERSION_TABLE,
    version_table_schema=SCHEMA,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
