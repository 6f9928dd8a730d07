"""The log: updates are consumed by snapshot. Segments, the journal of passes, the lineage of stored ids.

An update bears the id of its transaction. A bucket's mark is a snapshot: what it sees is combined. The tables of
updates of existing queues are made anew, with what is pending; a downgrade makes the former ones, with what is pending.

Revision ID: 0016
Revises: 0015
"""

from __future__ import annotations

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

# The views are made anew by the upgrade that follows; what depends on them stays.
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
            cross join unnest(array['_current', '_pending']) as ending
            join pg_attribute a on a.attrelid = to_regclass(format('pgcombine.%I', q.queue || ending))
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
# Beside functions of any version: these go with the transaction.
_HELPERS = [
    """
    create function pg_temp.partition_name(queue text, partition integer, ending text) returns text
    language sql as $$
        select format('pgcombine.%I', queue || '_updates_b' || to_char(partition, 'FM0000') || ending)
    $$
    """,
    # the owner and the privileges of the parent; of who may delete from it also those that passes need
    """
    create function pg_temp.entrust(parent regclass, child text, passes text) returns void
    language plpgsql as $$
    declare
        _grant record;
    begin
        execute format('alter table %s owner to %s', child,
            (select c.relowner::regrole from pg_class c where c.oid = parent));
        for _grant in
            select a.privilege_type, a.is_grantable,
                   case a.grantee when 0 then 'public' else a.grantee::regrole::text end as grantee
            from pg_class c, aclexplode(c.relacl) a
            where c.oid = parent and a.grantee <> c.relowner and a.privilege_type in ('SELECT', 'DELETE', 'TRUNCATE')
        loop
            execute format('grant %s on %s to %s%s', _grant.privilege_type, child, _grant.grantee,
                case when _grant.is_grantable then ' with grant option' end);
            if _grant.privilege_type = 'DELETE' then
                execute format('grant %s on %s to %s', passes, child, _grant.grantee);
            end if;
        end loop;
        if (select c.relreplident = 'f' from pg_class c where c.oid = parent) then
            execute format('alter table %s replica identity full', child);
        end if;
    end
    $$
    """,
    """
    create function pg_temp.tablespace(queue pgcombine.queue, partition integer) returns text
    language sql as $$
        select coalesce(' tablespace '
            || quote_ident(queue.tablespaces[1 + partition % cardinality(queue.tablespaces)]), '')
    $$
    """,
]
_DROP_HELPERS = [
    "drop function pg_temp.partition_name, pg_temp.entrust, pg_temp.tablespace",
]
# Packed rows whose arrays can't be updates, which only somebody's own SQL can have written: passes of the former
# version held them as an entry of the quarantine. There are none any more, so what they hold is kept beside the queues.
_UNFIT = [
    "create table if not exists pgcombine.unfit_update (queue text not null, content jsonb not null)",
    """
    comment on table pgcombine.unfit_update is
        'What rows held that were no sets of updates: keys were missing or too long, or arrays of different lengths. '
        'Insert what is right into the queue''s updates, by '
        'jsonb_populate_record(null::pgcombine.<queue>_values, content); then drop the table.'
    """,
    """
    insert into pgcombine.unfit_update (queue, content)
    select k.queue, jsonb_path_query(k.key, '$.pgcombine_packed[*]') from pgcombine.quarantined_key k
    """,
    "delete from pgcombine.quarantined_key k where k.key ? 'pgcombine_packed'",
]
_NO_UNFIT = [
    """
    do $$
    begin
        if exists (select from pgcombine.unfit_update) then
            raise warning 'some packed rows were no sets of updates: pgcombine.unfit_update has what they held';
        else
            drop table pgcombine.unfit_update;
        end if;
    end
    $$
    """,
]
_TO_SEGMENTS = """
    do $$
    declare
        _queue pgcombine.queue;
        _updates regclass;
        _old regclass[];
        _table text;
        _c record;
        _arrays boolean; -- in the former tables
        _sound text;
        _part text;
        _segment text;
        _grant record;
    begin
        for _queue in select * from pgcombine.queue order by queue loop
            _updates := format('pgcombine.%I', _queue.queue || '_updates')::regclass;
            select string_agg(format('%I', c.name), ', ' order by c.position) as columns,
                   string_agg(format('unnest(pgcombine_%s)', c.position), ', ' order by c.position) as unnested,
                   string_agg(format('pgcombine_%s', c.position), ', ' order by c.position) as arrays,
                   string_agg(format('b.pgcombine_%s', c.position), ', ' order by c.position) as broken,
                   string_agg(format('drop column pgcombine_%s', c.position), ', ' order by c.position) as dropped,
                   string_agg(format(', add column pgcombine_%s %s[]', c.position, c.type), ''
                              order by c.position) as added,
                   bool_and(t.typarray <> 0 and t.typcategory not in ('A', 'C')
                            -- keys whose hash is another where a dump is restored; domains have their type's function
                            and (c.role = 'value'
                                 or t.typoutput::text !~ '^(enum|reg|aclitem|range|multirange)')) as packs,
                   format('coalesce(cardinality(pgcombine_0) > 0 and cardinality(pgcombine_0) = all (array[%s])'
                          ' and coalesce(array_ndims(pgcombine_0), 1) = 1, false)',
                          string_agg(format('cardinality(pgcombine_%s)', c.position), ', ' order by c.position))
                       as of_one_length,
                   string_agg(format(' and num_nulls(variadic pgcombine_%s) = 0', c.position)
                       || case when t.typlen <> -1 then '' else format(
                           ' and (pg_column_size(pgcombine_%1$s) <= %2$s'
                           ' and pg_column_compression(pgcombine_%1$s) is null'
                           ' or pgcombine.longest(pgcombine_%1$s) <= %2$s)', c.position,
                           2600 / (select count(*)
                                   from pgcombine.queue_column k join pg_type y on y.oid = k.type::regtype
                                   where k.queue = _queue.queue and k.role = 'key' and y.typlen = -1)) end, ''
                       order by c.position) filter (where c.role = 'key') as short_keys,
                   string_agg(format(' and num_nulls(variadic pgcombine_%s) = 0', c.position), ''
                                     order by c.position) filter (where c.role = 'key') as no_null_keys,
                   coalesce(string_agg(format(' and pg_column_size(pgcombine_%1$s) <= 2600 / %2$s'
                                              ' and pg_column_compression(pgcombine_%1$s) is null', c.position,
                           (select count(*) from pgcombine.queue_column k
                            where k.queue = _queue.queue and k.role = 'key')), '')
                       filter (where c.role = 'key' and t.typlen = -1), '') as short,
                   string_agg(format(case when t.typcategory = 'S' then 'octet_length(%1$I::text)'
                                          else 'pg_column_size(%1$I)' end, c.name), ' + ' order by c.position)
                       filter (where c.role = 'key' and t.typlen = -1) as size
            into _c
            from pgcombine.queue_column c join pg_type t on t.oid = c.type::regtype
            where c.queue = _queue.queue;
            update pgcombine.queue q set packs = _c.packs and q.buckets = 1 and q.max_backlog is null
            where q.queue = _queue.queue returning * into _queue;

            _old := array(select i.inhrelid::regclass from pg_inherits i where i.inhparent = _updates order by 1);
            for _number in 1 .. cardinality(_old) loop
                execute format('alter table %s detach partition %s', _updates, _old[_number]);
                execute format('alter table %s rename to %I', _old[_number],
                    (select c.relname from pg_class c where c.oid = _old[_number]) || '_old');
            end loop;
            _arrays := exists (select from pg_attribute a
                               where a.attrelid = _updates and a.attname = 'pgcombine_packed' and not a.attisdropped);
            execute format('alter table %s %s add column pgcombine_tx bigint not null'
                           ' default txid_current()%s',
                _updates,
                case when _arrays then 'drop column pgcombine_packed, ' || _c.dropped || ', ' else '' end,
                case when _queue.packs then _c.added end);
            for _grant in
                select distinct case a.grantee when 0 then 'public' else a.grantee::regrole::text end as grantee
                from pg_class c, aclexplode(c.relacl) a
                where c.oid = _updates and a.grantee <> c.relowner and a.privilege_type = 'DELETE'
            loop
                execute format('grant truncate on %s to %s', _updates, _grant.grantee);
            end loop;

            for _number in 0 .. _queue.partitions - 1 loop
                _part := pg_temp.partition_name(_queue.queue, _number, '');
                execute format('create table %s partition of %s for values with (modulus %s, remainder %s)'
                               ' partition by list ((%s(pgcombine_tx::pgcombine.own_tx >> %s) & %s%s))',
                    _part, _updates, _queue.partitions, _number, case when _queue.packs then '(' end,
                    _queue.segment_bits, _queue.segments - 1,
                    case when _queue.packs then format(') + case when num_nonnulls(%s) = 0 then 0 else %s end',
                                                       _c.arrays, _queue.segments) end);
                perform pg_temp.entrust(_updates, _part, 'select, truncate, delete');
                for _place in 0 .. _queue.segments * case when _queue.packs then 2 else 1 end - 1 loop
                    _segment := pg_temp.partition_name(_queue.queue, _number, '_s' || _place);
                    execute format('create table %s partition of %s for values in (%s)'
                                   ' with (autovacuum_vacuum_insert_threshold = -1,'
                                   ' autovacuum_analyze_threshold = 2147483647)%s',
                        _segment, _part, _place, pg_temp.tablespace(_queue, _number));
                    if _place >= _queue.segments then
                        execute format('alter table %s add constraint what_is_in_arrays_must_be_updates check (%s)',
                            _segment, _c.of_one_length || _c.short_keys);
                    end if;
                    perform pg_temp.entrust(_updates, _segment, 'select, truncate, delete');
                end loop;
            end loop;

            for _number in 1 .. cardinality(_old) loop
                if _arrays then
                    -- no key in short arrays that aren't compressed is too long; in others it is looked for
                    _sound := _c.of_one_length || _c.no_null_keys || case when _c.size is null then '' else format(
                        ' and (true%s or not exists (select from unnest(%s) as pgcombine_all (%s) where %s > 2604))',
                        _c.short, _c.arrays, _c.columns, _c.size) end;
                    execute format(
                        'with broken as (
                             delete from %1$s where pgcombine_packed is not null and not (%2$s) returning *
                         )
                         insert into pgcombine.unfit_update (queue, content)
                         select $1, to_jsonb(pgcombine_all) from broken b
                         cross join lateral (select %3$s union all select * from unnest(%4$s)) as pgcombine_all (%3$s)',
                        _old[_number], _sound, _c.columns, _c.broken)
                    using _queue.queue;
                    execute format('insert into %1$s (%2$s) select %3$s from %4$s where pgcombine_packed is not null',
                        _updates, _c.columns, _c.unnested, _old[_number]);
                end if;
                execute format('insert into %1$s (%2$s) select %2$s from %3$s', _updates, _c.columns, _old[_number]);
                execute format('drop table %s', _old[_number]);
            end loop;
        end loop;
    end
    $$
"""
# This transaction is in progress in the first marks: what it has written is pending.
_FIRST_MARKS = """
    insert into pgcombine.pass (queue, bucket, pass, mark, began, updates, keys, changes)
    select b.queue, b.bucket, 0,
           case when o.id < txid_snapshot_xmax(s) then
               format('%s:%s:%s', least(o.id, txid_snapshot_xmin(s)), txid_snapshot_xmax(s),
                   (select string_agg(i.id::text, ',' order by i.id)
                    from (select o.id union select txid_snapshot_xip(s)) i (id)))::txid_snapshot
           else s end,
           clock_timestamp(), 0, 0, 0
    from pgcombine.bucket b, txid_current_snapshot() s, txid_current() o (id)
"""
_FROM_SEGMENTS = """
    do $$
    declare
        _queue pgcombine.queue;
        _updates regclass;
        _part text;
        _c record;
        _grant record;
    begin
        for _queue in select * from pgcombine.queue order by queue loop
            _updates := format('pgcombine.%I', _queue.queue || '_updates')::regclass;
            select string_agg(format('%I', c.name), ', ' order by c.position) as columns,
                   string_agg(format('%1$I::%2$s as %1$I', c.name, c.type), ', ' order by c.position) as typed,
                   string_agg(format(', drop column pgcombine_%s', c.position), '' order by c.position) as dropped,
                   string_agg(format(', add column pgcombine_%s %s[]', c.position, c.type), ''
                              order by c.position) as added,
                   bool_and(t.typarray <> 0 and t.typcategory not in ('A', 'C')
                            and c.combiner is distinct from 'python') as packs
            into _c
            from pgcombine.queue_column c join pg_type t on t.oid = c.type::regtype
            where c.queue = _queue.queue;
            execute (
                select string_agg(format('alter table %s detach partition %s; drop table %2$s', _updates,
                                         i.inhrelid::regclass), '; ')
                from pg_inherits i where i.inhparent = _updates);
            execute format('alter table %s drop column pgcombine_tx%s%s', _updates,
                case when exists (select from pg_attribute a
                                  where a.attrelid = _updates and a.attname = 'pgcombine_0' and not a.attisdropped)
                     then _c.dropped end,
                case when _c.packs and _queue.partitions = _queue.buckets and _queue.buckets <= 64
                          and _queue.max_backlog is null
                     then ', add column pgcombine_packed integer' || _c.added end);
            for _grant in
                select distinct case a.grantee when 0 then 'public' else a.grantee::regrole::text end as grantee
                from pg_class c, aclexplode(c.relacl) a
                where c.oid = _updates and a.grantee <> c.relowner and a.privilege_type = 'TRUNCATE'
            loop
                execute format('grant insert, delete on %s to %s', _updates, _grant.grantee);
                execute format('revoke truncate on %s from %s', _updates, _grant.grantee);
            end loop;
            for _number in 0 .. _queue.partitions - 1 loop
                _part := pg_temp.partition_name(_queue.queue, _number, '');
                execute format('create table %s partition of %s for values with (modulus %s, remainder %s)'
                               ' with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,'
                               ' autovacuum_vacuum_insert_threshold = -1)%s',
                    _part, _updates, _queue.partitions, _number, pg_temp.tablespace(_queue, _number));
                perform pg_temp.entrust(_updates, _part, 'select, insert, delete');
            end loop;
            execute format('insert into %1$s (%2$s) select %2$s from pg_temp.%3$I', _updates, _c.columns,
                _queue.queue || '_pending');
            execute format('create or replace view pgcombine.%I as select %s from %s', _queue.queue || '_pending',
                _c.typed, _updates);
        end loop;
    end
    $$
"""
UPGRADE = [
    # before the catalog: whoever writes to a queue locks its updates, then the catalog
    """
    do $$
    declare
        _queue text;
    begin
        for _queue in select queue from pgcombine.queue order by queue loop
            execute format('lock table pgcombine.%I in access exclusive mode', _queue || '_updates');
        end loop;
    end
    $$
    """,
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
        inserted bigint,
        primary key (queue, bucket, pass),
        foreign key (queue, bucket) references pgcombine.bucket on delete cascade,
        check ((mask is null) = (slice is null)),
        constraint pass_sane check (
            pass between 0 and 4000000000000000000 and isfinite(began) and isfinite(ended)
            and (mask between 1 and 65535 and mask & (mask + 1) = 0 and slice between 0 and mask) is not false
            and updates between 0 and 1000000000000000 and keys between 0 and 1000000000000000
            and changes between 0 and 1000000000000000
            and (inserted between -4000000000000000 and 4000000000000000) is not false)
    ) with (autovacuum_vacuum_insert_scale_factor = 1)
    """,
    """
    comment on table pgcombine.pass is
        'The journal of passes; the newest row of a bucket is its state: what its mark sees is combined.'
    """,
    """
    comment on column pgcombine.pass.inserted is
        'With max_backlog: how many rows the statistics had counted into the bucket''s tables, less those left pending.'
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
        'Slices of the keys, as mask + 1 + slice, whose pass the server has cancelled: their parts come next.'
    """,
    "comment on column pgcombine.failure.tx is 'What was passed over since then has had its turn.'",
    "comment on type pgcombine.plan is 'What a pass is to do: see pgcombine.plan_pass.'",
    "delete from pgcombine.tick",
    "alter table pgcombine.tick add column next_id bigint not null",
    "alter table pgcombine.pass enable row level security",
    "create table pgcombine.lineage (id xid not null)",
    """
    comment on table pgcombine.lineage is
        'As long as the xmin of each row is its id, this is the database in which the ids of transactions were given.'
    """,
    "create table pgcombine.restoring (tx bigint primary key default txid_current())",
    """
    comment on table pgcombine.restoring is
        'Transactions that write updates with the ids that they had: rebucket.'
    """,
    # two rows of two (sub)transactions: a restore writes both in one, whose id may happen to be that of one of them
    """
    do $$
    begin
        insert into pgcombine.lineage (id) values ('0');
        update pgcombine.lineage set id = xmin;
        begin
            insert into pgcombine.lineage (id) values ('0');
            update pgcombine.lineage set id = xmin where id = '0';
        exception when division_by_zero then null; -- what makes it a subtransaction
        end;
    end
    $$
    """,
    """
    create function pgcombine.restoring() returns boolean
    language sql stable security definer set search_path = pg_catalog, pg_temp as $$
        select not coalesce((select bool_and(l.xmin = l.id) from pgcombine.lineage l), false)
            or exists (select from pgcombine.restoring r where r.tx = txid_current_if_assigned())
    $$
    """,
    """
    create function pgcombine.longest(elements anyarray) returns integer
    language sql immutable parallel safe as $$ select max(pg_column_size(e)) from unnest(elements) e $$
    """,
    """
    create domain pgcombine.own_tx as bigint
        constraint updates_bear_the_id_of_their_transaction check (value = txid_current() or pgcombine.restoring())
    """,
    _FREE_VIEWS,
    *_UNFIT,
    *_HELPERS,
    _TO_SEGMENTS,
    *_DROP_HELPERS,
    *_NO_UNFIT,
    _FIRST_MARKS,
]
DOWNGRADE = [
    """
    do $$
    declare
        _queue text;
    begin
        for _queue in select queue from pgcombine.queue order by queue loop
            execute format('lock table pgcombine.%I in access exclusive mode', _queue || '_updates');
            execute format('create temporary table %I on commit drop as select * from pgcombine.%1$I',
                _queue || '_pending');
        end loop;
    end
    $$
    """,
    _FREE_VIEWS,
    *_HELPERS,
    _FROM_SEGMENTS,
    *_DROP_HELPERS,
    # until the older program's upgrade replaces it
    """
    create or replace function pgcombine.wake() returns trigger language plpgsql as $$ begin return null; end $$
    """,
    "drop domain pgcombine.own_tx",
    "drop function if exists pgcombine.restoring()",
    "drop function if exists pgcombine.longest(anyarray)",
    "drop table pgcombine.restoring, pgcombine.lineage, pgcombine.pass cascade",
    "drop type pgcombine.plan cascade",
    "delete from pgcombine.tick",
    "alter table pgcombine.tick drop column next_id",
    "alter table pgcombine.failure drop column slow, drop column tx",
    """
    alter table pgcombine.bucket
        add column moves bigint not null default 0,
        add column since timestamptz,
        add constraint bucket_sane0 check (moves between 0 and 4000000000000000000 and isfinite(since))
    """,
    """
    alter table pgcombine.queue
        drop column segments, drop column segment_bits, drop column packs,
        add column fold text not null default ''
    """,
]


def upgrade() -> None:
    for statement in UPGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
