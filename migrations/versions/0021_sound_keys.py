"""The check of packed rows calls one function that PostgreSQL doesn't try to inline: it took half of an insert.

Revision ID: 0021
Revises: 0020
"""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_REPLACE = """
    do $$
    declare
        _table regclass;
        _check text;
    begin
        for _table, _check in
            select k.conrelid::regclass, format({whole},
                       string_agg(format({length}, c.position), {and_or_comma} order by c.position),
                       string_agg(format({keys}, c.position, 2600 / nullif(s.long_keys, 0)), ' and '
                                  order by c.position) filter (where c.role = 'key'))
            from pg_constraint k
            join pg_class r on r.oid = pg_partition_root(k.conrelid)
            join pgcombine.queue q on r.relname = q.queue || '_updates' and r.relnamespace = 'pgcombine'::regnamespace
            join pgcombine.queue_column c using (queue)
            join pg_type t on t.oid = c.type::regtype
            cross join lateral (
                select count(*) as long_keys from pgcombine.queue_column l join pg_type y on y.oid = l.type::regtype
                where l.queue = q.queue and l.role = 'key' and y.typlen = -1) s
            where k.conname = 'what_is_in_arrays_must_be_updates'
            group by k.conrelid
        loop
            execute format('alter table %s drop constraint what_is_in_arrays_must_be_updates', _table);
            execute format('alter table %s add constraint what_is_in_arrays_must_be_updates check (%s)',
                _table, _check);
        end loop;
    end
    $$
"""
UPGRADE = (
    """
    create function pgcombine_internal.sound_keys(keys anyarray, limit_bytes integer) returns boolean
    language plpgsql immutable parallel safe as $$
    begin
        if num_nulls(variadic keys) > 0 or array_ndims(keys) is distinct from 1 then
            return false;
        elsif limit_bytes is null or pg_column_size(keys) <= limit_bytes then
            return true;
        end if;
        return (select max(pg_column_size(e)) from unnest(keys) e) <= limit_bytes;
    end
    $$
    """,
    _REPLACE.format(
        whole="'(cardinality(pgcombine_0) > 0 and %s and %s) is true'",
        length="'cardinality(pgcombine_%s) = cardinality(pgcombine_0)'",
        and_or_comma="' and '",
        keys="'pgcombine_internal.sound_keys(pgcombine_%s, '"
        " || case when t.typlen = -1 then '%s' else 'null' end || ')'",
    ),
    "drop function if exists pgcombine_internal.longest(anyarray)",
)
DOWNGRADE = (
    """
    create function pgcombine_internal.longest(elements anyarray) returns integer
    language sql immutable parallel safe as $$ select max(pg_column_size(e)) from unnest(elements) e $$
    """,
    _REPLACE.format(
        whole="'coalesce(cardinality(pgcombine_0) > 0 and cardinality(pgcombine_0) = all (array[%s])"
        " and coalesce(array_ndims(pgcombine_0), 1) = 1, false) and %s'",
        length="'cardinality(pgcombine_%s)'",
        and_or_comma="', '",
        keys="'num_nulls(variadic pgcombine_%1$s) = 0' || case when t.typlen <> -1 then '' else"
        " ' and (pg_column_size(pgcombine_%1$s) <= %2$s and pg_column_compression(pgcombine_%1$s) is null"
        " or pgcombine_internal.longest(pgcombine_%1$s) <= %2$s)' end",
    ),
    # the older program's upgrade makes those that call other functions of its own
    "drop function if exists pgcombine_internal.sound_keys(anyarray, integer)",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
