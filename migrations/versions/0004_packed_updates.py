"""Packed updates: one row of a queue's updates carries several. A key type with a cheaper limit on its size.

``pgcombine_packed`` is null in a plain row. Otherwise it is the number of buckets for which the row was packed, and
the arrays ``pgcombine_0``, ``pgcombine_1`` and so on hold further updates of the same bucket, column by column.
Existing queues keep the check on their key's size: to change a column's type, views on it would have to go.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

UPGRADE = (
    """
    do $$
    begin
        if to_regtype('pgcombine.key_text') is null then -- a downgrade leaves it to the queues that use it
            create domain pgcombine.key_text as text
                constraint key_has_at_most_2600_bytes check (octet_length(value) <= 2600);
            comment on domain pgcombine.key_text is
                'A text that fits into a primary key. A check of the table would cost each statement more.';
        end if;
    end
    $$
    """,
    "alter table pgcombine.queue alter column pass_limit set default 1000000",
    "update pgcombine.queue set pass_limit = 1000000 where pass_limit = 200000",
    # as create_tables makes them; what can't be packed goes on as plain rows
    """
    do $$
    declare
        _queue text;
        _arrays text;
    begin
        for _queue, _arrays in
            select c.queue, string_agg(format('add column pgcombine_%s %s[]', c.position,
                       c.type), ', ' order by c.position)
            from pgcombine.queue_column c
            join pgcombine.queue q using (queue)
            join pg_type t on t.oid = c.type::regtype
            where q.partitions = q.buckets and q.buckets <= 64 and q.max_backlog is null
            group by c.queue
            having bool_and(t.typarray <> 0 and t.typcategory not in ('A', 'C')
                            and c.combiner is distinct from 'python')
        loop
            execute format('alter table pgcombine.%I add column pgcombine_packed integer, %s',
                _queue || '_updates', _arrays);
        end loop;
    end
    $$
    """,
)

DOWNGRADE = (
    """
    do $$
    declare
        _queue text;
        _columns text;
        _typed text;
        _arrays text;
        _dropped text;
    begin
        for _queue, _columns, _typed, _arrays, _dropped in
            select c.queue, string_agg(format('%I', c.name), ', ' order by c.position),
                   string_agg(format('%1$I::%2$s as %1$I', c.name, c.type), ', ' order by c.position),
                   string_agg(format('unnest(pgcombine_%s)', c.position), ', ' order by c.position),
                   string_agg(format(', drop column pgcombine_%s', c.position), '' order by c.position)
            from pgcombine.queue_column c
            join pg_attribute a on a.attrelid = format('pgcombine.%I', c.queue || '_updates')::regclass
                               and a.attname = 'pgcombine_packed'
            group by c.queue
        loop
            execute format('insert into pgcombine.%1$I (%2$s) select %3$s from pgcombine.%1$I '
                           'where pgcombine_packed is not null',
                _queue || '_updates', _columns, _arrays);
            execute format('create or replace view pgcombine.%I as select %s from pgcombine.%I', _queue || '_pending',
                _typed, _queue || '_updates');
            execute format('drop function if exists pgcombine.%I', _queue || '_enqueue');
            execute format('alter table pgcombine.%I drop column pgcombine_packed%s', _queue || '_updates', _dropped);
        end loop;
    end
    $$
    """,
    "update pgcombine.queue set pass_limit = 200000 where pass_limit = 1000000",
    "alter table pgcombine.queue alter column pass_limit set default 200000",
    """
    do $$
    begin
        drop domain pgcombine.key_text;
    exception when dependent_objects_still_exist then
        null;
    end
    $$
    """,
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
