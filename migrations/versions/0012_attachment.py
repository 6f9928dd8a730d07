"""Attached tables: what is enqueued for their rows is recorded, no longer only in the arguments of their triggers.

The tables that are attached already are brought over; the upgrade then makes their triggers anew.

Revision ID: 0012
Revises: 0011
"""

from __future__ import annotations

from alembic import context, op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

UPGRADE = (
    """
    create table pgcombine.attachment (
        id      integer generated always as identity primary key,
        queue   text not null references pgcombine.queue on delete cascade,
        source  regclass not null,
        alias   text not null,
        mapping text not null,
        columns name[] not null,
        reads   name[] not null,
        path    name[],
        unique (queue, source)
    )
    """,
    "comment on table pgcombine.attachment is 'Tables whose changes are enqueued; see pgcombine.attach.'",
    "comment on column pgcombine.attachment.alias is 'The name of a row of the table in the mapping.'",
    "comment on column pgcombine.attachment.columns is 'The columns of the queue that the mapping gives.'",
    "comment on column pgcombine.attachment.reads is 'The columns of the table that the mapping reads.'",
    """
    comment on column pgcombine.attachment.path is
        'The search path of the mapping; null: that of the session which changes the table.'
    """,
    # The arguments: the queue, the columns read, the statement, the search path (since later versions only).
    # They are separated by zero bytes, which no text can hold.
    r"""
    insert into pgcombine.attachment (queue, source, alias, mapping, columns, reads, path)
    select a.args[1], t.tgrelid, (parse_ident(s.parts[1]))[1], s.parts[2],
           array(select c.name::name from pgcombine.queue_column c
                 where c.queue = a.args[1] and strpos(a.args[3], format('pgcombine_mapped.%I::', c.name)) > 0
                 order by c.position),
           case when a.args[2] like '{%' then a.args[2]::name[] else '{}' end,
           case when a.args[4] is not null then array(
               select (parse_ident(m.match[1]))[1]::name
               from regexp_matches(a.args[4], '"(?:[^"]|"")+"|[^ ,]+', 'g') with ordinality as m (match, number)
               order by m.number) end
    from pg_trigger t
    cross join lateral (
        select array(
            select convert_from(decode(replace(hex, ' ', ''), 'hex'), getdatabaseencoding())
            from unnest(string_to_array(regexp_replace(encode(t.tgargs, 'hex'), '(..)', '\1 ', 'g'), '00 '))
                 with ordinality as u (hex, number)
            where number <= t.tgnargs
            order by number) as args) a
    cross join lateral (
        select regexp_match(substr(a.args[3], strpos(a.args[3], ' from pgcombine_new as ')),
            '^ from pgcombine_new as ("(?:[^"]|"")+"|\S+) cross join lateral \((.*)\) as pgcombine_mapped\) as ')
            as parts) s
    where t.tgfoid = to_regproc('pgcombine.attached') and t.tgname = 'pgcombine_' || a.args[1] || '_insert'
      and exists (select from pgcombine.queue q where q.queue = a.args[1])
    """,
)
DOWNGRADE = (
    # the older version's triggers would be missing, and changes of the table lost
    """
    do $$
    declare
        _a record;
    begin
        for _a in select a.queue, a.source from pgcombine.attachment a join pg_class c on c.oid = a.source loop
            raise exception 'queue "%" is attached to %, which an older version can''t take over', _a.queue, _a.source
                using errcode = 'PC005', hint = format('select pgcombine.detach(%L, %L) first', _a.queue, _a.source);
        end loop;
    end
    $$
    """,
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    if context.get_revision_argument() is not None:  # None: all goes, the triggers too
        for statement in DOWNGRADE:
            op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
    op.get_bind().exec_driver_sql("drop table pgcombine.attachment cascade")
