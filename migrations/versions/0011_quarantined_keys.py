"""Quarantined keys are known by their values: a hash of them may be another where a dump is restored.

``<queue>_quarantine_keys`` has the keys in columns of their own types, which passes compare; the updates that are held,
and pgcombine.quarantined_key, refer to them by a number.

Revision ID: 0011
Revises: 0010
"""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# the views are made anew by the upgrade that follows; what depends on them stays
_FREE_VIEWS = """
    do $$
    declare
        _view regclass;
        _columns text;
    begin
        for _view, _columns in
            select a.attrelid, string_agg(format('null::%s%s as %I', format_type(a.atttypid, a.atttypmod),
                       case when a.attcollation <> t.typcollation
                            then format(' collate %I.%I', n.nspname, o.collname) end, a.attname),
                   ', ' order by a.attnum)
            from pgcombine.queue q
            join pg_attribute a on a.attrelid = to_regclass(format('pgcombine.%I', q.queue || '_current'))
            join pg_type t on t.oid = a.atttypid
            left join pg_collation o on o.oid = a.attcollation
            left join pg_namespace n on n.oid = o.collnamespace
            where a.attnum > 0
            group by a.attrelid
        loop
            execute format('create or replace view %s as select %s where false', _view, _columns);
        end loop;
    end
    $$
"""
UPGRADE = (
    _FREE_VIEWS,
    "create temporary table quarantined_before on commit drop as table pgcombine.quarantined_key",
    "delete from pgcombine.quarantined_key",
    "alter table pgcombine.quarantined_key drop column hash",
    "alter table pgcombine.quarantined_key add column id bigint generated always as identity primary key",
    "create index on pgcombine.quarantined_key (queue)",
    """
    comment on table pgcombine.quarantined_key is
        'Keys that no pass takes; <queue>_quarantine_keys has their values, <queue>_quarantine their updates.'
    """,
    """
    do $$
    declare
        _table regclass;
        _keys regclass;
        _queue text;
        _names text;
        _members text;
        _columns text;
        _grant record;
        _first tid;
        _hash bigint;
        _updates bigint;
        _id bigint;
    begin
        for _queue, _table, _names, _members, _columns in
            select c.queue, to_regclass(format('pgcombine.%I', c.queue || '_quarantine')),
                   string_agg(format('q.%I', c.name), ', ' order by c.position),
                   string_agg(format('%L, q.%I', c.name, c.name), ', ' order by c.position),
                   string_agg(format('pgcombine_%s %s%s', c.position, c.type, ' collate ' || c.collation), ', '
                              order by c.position)
                   || format(', pgcombine_key bigint not null unique, primary key (%s)',
                             string_agg(format('pgcombine_%s', c.position), ', ' order by c.position))
            from pgcombine.queue_column c
            where c.role = 'key' and to_regclass(format('pgcombine.%I', c.queue || '_quarantine')) is not null
            group by c.queue
        loop
            execute format('create table pgcombine.%I (%s)', _queue || '_quarantine_keys', _columns);
            _keys := format('pgcombine.%I', _queue || '_quarantine_keys');
            execute format('alter table %s owner to %s', _keys,
                (select c.relowner::regrole from pg_class c where c.oid = _table));
            for _grant in
                select a.privilege_type, a.is_grantable,
                       case a.grantee when 0 then 'public' else a.grantee::regrole::text end as grantee
                from pg_class c, aclexplode(c.relacl) a
                where c.oid = _table and a.grantee <> c.relowner
            loop
                execute format('grant %s on %s to %s%s', _grant.privilege_type, _keys, _grant.grantee,
                    case when _grant.is_grantable then ' with grant option' else '' end);
            end loop;

            -- by the keys themselves: after a restore several may have been held under one hash, and one under two
            execute format(
                'create temporary table quarantined_row as
                 select q.ctid as found, first_value(q.ctid) over (partition by %s order by q.ctid) as first,
                        q.pgcombine_hash as hash
                 from %s q', _names, _table);
            for _first, _hash, _updates in
                select r.first, min(r.hash), count(*) from quarantined_row r group by r.first
            loop
                execute format(
                    'insert into pgcombine.quarantined_key (queue, key, updates, attempts, sqlstate, error, since)
                     select b.queue, jsonb_build_object(%s), $1, b.attempts, b.sqlstate, b.error, b.since
                     from quarantined_before b, %s q
                     where b.queue = $2 and b.hash = $3 and q.ctid = $4
                     returning id', _members, _table)
                into _id using _updates, _queue, _hash, _first;
                if _id is not null then
                    execute format('insert into %s select %s, $1 from %s q where q.ctid = $2', _keys, _names, _table)
                    using _id, _first;
                end if;
                execute format('update %s q set pgcombine_hash = coalesce($1, 0)
                                where q.ctid in (select r.found from quarantined_row r where r.first = $2)', _table)
                using _id, _first;
            end loop;
            drop table quarantined_row;
            execute (
                select string_agg(format('drop index %s', i.indexrelid::regclass), '; ')
                from pg_index i where i.indrelid = _table);
            execute format('alter table %s rename column pgcombine_hash to pgcombine_key', _table);
            execute format('create index on %s (pgcombine_key)', _table);
        end loop;
    end
    $$
    """,
)
DOWNGRADE = (
    _FREE_VIEWS,
    "alter table pgcombine.quarantined_key add column hash bigint",
    """
    do $$
    declare
        _queue text;
        _table regclass;
    begin
        for _queue, _table in
            select q.queue, to_regclass(format('pgcombine.%I', q.queue || '_quarantine')) from pgcombine.queue q
        loop
            continue when _table is null;
            if exists (select from pgcombine.quarantined_key k where k.queue = _queue) then
                execute format(
                    'update pgcombine.quarantined_key k set hash = h.hash
                     from (select pgcombine_key, min(%s) as hash from %s group by pgcombine_key) h
                     where k.id = h.pgcombine_key', pgcombine.key_hash(_queue), _table);
                execute format('update %s q set pgcombine_key = k.hash
                                from pgcombine.quarantined_key k where k.id = q.pgcombine_key', _table);
            end if;
            execute (
                select string_agg(format('drop index %s', i.indexrelid::regclass), '; ')
                from pg_index i where i.indrelid = _table);
            execute format('alter table %s rename column pgcombine_key to pgcombine_hash', _table);
            execute format('create index on %s (pgcombine_hash)', _table);
            execute format('drop table if exists pgcombine.%I', _queue || '_quarantine_keys');
        end loop;
    end
    $$
    """,
    "drop index pgcombine.quarantined_key_queue_idx",
    "alter table pgcombine.quarantined_key drop column id",
    "delete from pgcombine.quarantined_key where hash is null",
    "alter table pgcombine.quarantined_key add primary key (queue, hash)",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
