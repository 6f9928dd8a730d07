"""phrasecount: the documents it counted, and the work tables of a run.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

UPGRADE = (
    "create schema phrasecount",
    """
    create table phrasecount.directory (
        id   integer generated always as identity primary key,
        path text not null unique
    )
    """,
    "comment on table phrasecount.directory is 'Directories that were counted, by real path.'",
    """
    create table phrasecount.document (
        hash bytea primary key,
        refs bigint not null check (refs > 0)
    )
    """,
    """
    comment on table phrasecount.document is
        'Live documents, by SHA-256 of their tokens; refs is the number of URIs, over all directories.'
    """,
    """
    create table phrasecount.document_chunk (
        document bytea not null references phrasecount.document on delete cascade,
        seq      integer not null,
        tokens   text not null,
        primary key (document, seq)
    )
    """,
    """
    comment on table phrasecount.document_chunk is
        'Tokens of a document in bounded rows; each starts with the last three tokens of the one before.'
    """,
    """
    create table phrasecount.uri (
        directory    integer not null references phrasecount.directory on delete cascade,
        path         text not null,
        content_hash bytea not null,
        document     bytea not null references phrasecount.document,
        primary key (directory, path)
    )
    """,
    "create index uri_document on phrasecount.uri (document)",
    """
    comment on table phrasecount.uri is
        'Files that were counted: path below the directory, SHA-256 of the content, and the document it holds.'
    """,
    # Work tables. A run's rows carry its load; others are left-overs of a run that died, and are removed by
    # the next. Unlogged: a server that crashed has ended the run.
    """
    create unlogged table phrasecount.listed (
        load    uuid not null,
        n       integer not null,
        path    text not null,
        counted boolean not null,
        primary key (load, n)
    )
    """,
    "comment on table phrasecount.listed is 'Work: files found; not counted are those beyond --limit.'",
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
    create unlogged table phrasecount.move (
        load         uuid not null,
        n            integer,
        path         text not null,
        content_hash bytea,
        document     bytea,
        old_document bytea
    )
    """,
    "comment on table phrasecount.move is 'Work: URIs that are new, edited or gone (document is null).'",
    """
    create unlogged table phrasecount.delta (
        load     uuid not null,
        position bigint,
        document bytea not null,
        refs     bigint not null,
        sign     integer not null,
        n        integer
    )
    """,
    "create index delta_position on phrasecount.delta (load, position)",
    """
    comment on table phrasecount.delta is
        'Work: documents whose references change; sign 1 becomes live, -1 dies; n is a file that holds it.'
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
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    op.get_bind().exec_driver_sql("drop schema phrasecount cascade")
