"""phrasecount on the sinks for Spark: loads whose attempts are known before they end, documents kept by their hash.

Revision ID: 0009
Revises: 0008
"""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# Their results or the tables that they read are others now; what replaces them isn't versioned.
REPLACED = (
    "drop view if exists phrasecount.scanned_once, phrasecount.difference_once",
    "drop function if exists phrasecount.mismatches(uuid), phrasecount.apply(uuid, text)",
    "drop function if exists phrasecount.compare(uuid, text), phrasecount.clean()",
)
UPGRADE = (
    *REPLACED,
    "alter table pgcombine.spark_load add column attempts xid8[], add column expected bigint",
    """
    comment on column pgcombine.spark_load.attempts is
        'Attempts that succeeded, if the load is prepared: only its end is missing. See also expected, their rows.'
    """,
    # A document's chunks are written before it is known whether the run will commit.
    "alter table phrasecount.document_chunk drop constraint document_chunk_document_fkey",
    """
    create table phrasecount.kept (
        document bytea primary key
    )
    """,
    """
    comment on table phrasecount.kept is
        'Documents whose chunks were written by a run that has not committed; the next run removes those of a dead one.'
    """,
    "drop table phrasecount.difference, phrasecount.scanned",
    """
    create unlogged table phrasecount.scanned (
        load         uuid not null,
        n            integer not null,
        content_hash bytea,
        document     bytea,
        left_out     bigint not null default 0,
        problem      text,
        detail       text,
        primary key (load, n)
    )
    """,
    """
    comment on table phrasecount.scanned is
        'Work: of each new or edited file its hashes and how many phrases are too long to be a key, or its problem.'
    """,
)
DOWNGRADE = (
    *REPLACED,
    "drop function if exists phrasecount.keep(bytea[], integer[], integer[], text[])",
    """
    drop function if exists phrasecount.note(uuid, integer[], bytea[], bytea[], bigint[], text[], text[])
    """,
    "drop table phrasecount.scanned",
    """
    create unlogged table phrasecount.scanned (
        load         uuid not null,
        part         integer not null,
        attempt      xid8 not null default pg_current_xact_id(),
        n            integer not null,
        seq          integer,
        tokens       text,
        content_hash text,
        document     text,
        problem      text,
        detail       text
    )
    """,
    "create index scanned_n on phrasecount.scanned (load, n)",
    """
    comment on table phrasecount.scanned is
        'Work: of each new or edited file its chunks and one row with the hashes, or one with its problem.'
    """,
    """
    create unlogged table phrasecount.difference (
        load    uuid not null,
        part    integer not null,
        attempt xid8 not null default pg_current_xact_id(),
        phrase  text,
        docs    bigint not null,
        total   bigint not null
    )
    """,
    """
    comment on table phrasecount.difference is
        'Work: updates of a run, or a recount; a null phrase stands for those too long to be a key.'
    """,
    """
    delete from phrasecount.document_chunk c
    where not exists (select from phrasecount.document d where d.hash = c.document)
    """,
    "drop table phrasecount.kept",
    """
    alter table phrasecount.document_chunk
        add constraint document_chunk_document_fkey
            foreign key (document) references phrasecount.document on delete cascade
    """,
    # who would end them wouldn't know which of their rows count
    "delete from pgcombine.spark_load where attempts is not null",
    "alter table pgcombine.spark_load drop column attempts, drop column expected",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
