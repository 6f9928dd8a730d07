"""phrasecount makes its tables itself, at its first use. Where they hold nothing they go.

Where they hold documents they stay, and phrasecount goes on with them.

Revision ID: 0018
Revises: 0017
"""

from __future__ import annotations

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

# Tables of another role are left alone: to read one of its views would run its code.
UPGRADE = """
    do $$
    declare
        _tables constant text[] := array['uri', 'document', 'document_chunk', 'kept', 'directory', 'listed', 'scanned',
                                         'move', 'delta'];
        _routine regprocedure;
    begin
        if (select count(*)
            from pg_class c
            join pg_roles r on r.oid = c.relowner
            where c.relnamespace = to_regnamespace('phrasecount') and c.relname = any (_tables) and c.relkind = 'r'
              and (r.rolsuper or r.rolname = current_user)) < cardinality(_tables)
        then
            return;
        end if;
        if exists (select from phrasecount.directory) or exists (select from phrasecount.document) then
            return;
        end if;
        -- a first run may be under way: it holds a lock on this table until it commits
        lock table phrasecount.directory in access exclusive mode;
        if exists (select from phrasecount.directory) or exists (select from phrasecount.document) then
            return;
        end if;
        for _routine in
            select p.oid
            from pg_proc p
            where p.pronamespace = 'phrasecount'::regnamespace
              and p.proname in ('apply', 'clean', 'compare', 'keep', 'keep_search', 'note')
        loop
            execute format('drop routine %s', _routine);
        end loop;
        drop table phrasecount.uri, phrasecount.document, phrasecount.document_chunk, phrasecount.kept,
            phrasecount.directory, phrasecount.listed, phrasecount.scanned, phrasecount.move, phrasecount.delta;
        drop schema phrasecount;
    exception
        when dependent_objects_still_exist then null; -- something of the user's is in the schema, or the search table
    end
    $$
"""
# What the revisions 0002 and 0009 made, where it isn't there.
DOWNGRADE = (
    "create schema if not exists phrasecount",
    """
    create table if not exists phrasecount.directory (
        id   integer generated always as identity primary key,
        path text not null unique
    )
    """,
    "comment on table phrasecount.directory is 'Directories that were counted, by real path.'",
    """
    create table if not exists phrasecount.document (
        hash bytea primary key,
        refs bigint not null check (refs > 0)
    )
    """,
    """
    comment on table phrasecount.document is
        'Live documents, by SHA-256 of their tokens; refs is the number of URIs, over all directories.'
    """,
    """
    create table if not exists phrasecount.document_chunk (
        document bytea not null,
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
    create table if not exists phrasecount.uri (
        directory    integer not null references phrasecount.directory on delete cascade,
        path         text not null,
        content_hash bytea not null,
        document     bytea not null references phrasecount.document,
        primary key (directory, path)
    )
    """,
    "create index if not exists uri_document on phrasecount.uri (document)",
    """
    comment on table phrasecount.uri is
        'Files that were counted: path below the directory, SHA-256 of the content, and the document it holds.'
    """,
    """
    create table if not exists phrasecount.kept (
        document bytea primary key
    )
    """,
    """
    comment on table phrasecount.kept is
        'Documents whose chunks were written by a run that has not committed; the next run removes those of a dead one.'
    """,
    """
    create unlogged table if not exists phrasecount.listed (
        load    uuid not null,
        n       integer not null,
        path    text not null,
        counted boolean not null,
        primary key (load, n)
    )
    """,
    "comment on table phrasecount.listed is 'Work: files found; not counted are those beyond --limit.'",
    """
    create unlogged table if not exists phrasecount.scanned (
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
    """
    create unlogged table if not exists phrasecount.move (
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
    create unlogged table if not exists phrasecount.delta (
        load     uuid not null,
        position bigint,
        document bytea not null,
        refs     bigint not null,
        sign     integer not null,
        n        integer
    )
    """,
    "create index if not exists delta_position on phrasecount.delta (load, position)",
    """
    comment on table phrasecount.delta is
        'Work: documents whose references change; sign 1 becomes live, -1 dies; n is a file that holds it.'
    """,
    # the digest of files that an older program doesn't know
    "comment on schema phrasecount is null",
)


def upgrade() -> None:
    op.get_bind().exec_driver_sql(UPGRADE, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
