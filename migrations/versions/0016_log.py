"""The log: updates are consumed by snapshot. Segments, the journal of passes, the lineage of stored ids.

An update bears the id of its transaction. A bucket's mark is a snapshot: what it sees is combined. The queues' tables are
made anew, with what is pending, when the functions are in place (``pgcombine.convert_queue``).

Revision ID: 0016
Revises: 0015
"""

from __future__ import annotations

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

UPGRADE = [
    # a statement of an older program fails: it would delete what is not to be deleted
    "drop trigger if exists pgcombine_exported on pgcombine.queue",
    """
    alter table pgcombine.queue
        drop column fold,
        add column segments integer not null default 2 check (segments between 2 and 16),
        add column segment_bits integer not null default 12 check (segment_bits between 4 and 30),
        add column packs boolean not null default false
    """,
    """
    comment on column pgcombine.queue.segments is
        'A bucket''s updates are in so many tables, in turn: those of 2 ^ segment_bits transaction ids in one.'
    """,
    "comment on column pgcombine.queue.packs is 'Whether a row of the updates may hold many.'",
    "alter table pgcombine.bucket drop column moves, drop column since",
    "comment on table pgcombine.bucket is 'One row a bucket, which a pass locks and never writes: no dead rows.'",
    """
    create table pgcombine.pass (
        queue   text not null,
        bucket  integer not null,
        pass    bigint not null,
        mark    txid_snapshot not null,
        mask    bigint,
        slice   bigint,
        tx      bigint not null default txid_current(),
        began   timestamptz not null,
        ended   timestamptz not null default clock_timestamp(),
        updates bigint not null,
        keys    bigint not null,
        changes bigint not null,
        primary key (queue, bucket, pass),
        foreign key (queue, bucket) references pgcombine.bucket on delete cascade,
        check ((mask is null) = (slice is null))
    ) with (autovacuum_vacuum_insert_scale_factor = 1)
    """,
    """
    comment on table pgcombine.pass is
        'The journal of passes; the newest row of a bucket is its state: what its mark sees is combined.'
    """,
    "comment on column pgcombine.pass.mask is 'Of keys whose hash & mask = slice. Null: of all keys.'",
    """
    create type pgcombine.plan as (
        queue text, bucket integer, pass bigint, began timestamptz, mark txid_snapshot, mask bigint, slice bigint,
        tables text[], condition text, pending bigint, more boolean, held boolean, observe text[]
    )
    """,
    "alter table pgcombine.failure add column slow bigint[] not null default '{}', "
    "add column tx bigint not null default txid_current()",
    """
    comment on column pgcombine.failure.slow is
        'Slices of the keys, as mask + 1 + slice, whose pass the server has cancelled: their parts are passed over next.'
    """,
    "comment on column pgcombine.failure.tx is 'What was passed over since then has had its turn.'",
    "comment on type pgcombine.plan is 'What a pass is to do: see pgcombine.plan_pass.'",
    "delete from pgcombine.tick",
    "alter table pgcombine.tick add column next_id bigint not null",
    "alter table pgcombine.pass enable row level security",
    "create table pgcombine.lineage (id xid not null)",
    """
    comment on table pgcombine.lineage is
        'As long as the row''s xmin is its id, this is the database in which the ids of transactions were given.'
    """,
    """
    create table pgcombine.restoring (tx bigint primary key default txid_current())
    """,
    """
    comment on table pgcombine.restoring is
        'Transactions that write updates with the ids that they had: rebucket, and what takes a restored database over.'
    """,
    """
    create function pgcombine.restoring() returns boolean
    language sql stable security definer set search_path = pg_catalog, pg_temp as $$
        select not exists (select from pgcombine.lineage l where l.xmin = l.id)
            or exists (select from pgcombine.restoring r where r.tx = txid_current_if_assigned())
    $$
    """,
    """
    create domain pgcombine.own_tx as bigint
        constraint updates_bear_the_id_of_their_transaction check (value = txid_current() or pgcombine.restoring())
    """,
    "insert into pgcombine.lineage (id) values ('0')",
    "update pgcombine.lineage set id = xmin",
]
DOWNGRADE: list[str] = []


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
