-- pgcombine.create_export(export, queue [, exporter, target, target_table, existing, compact, batch, buckets])
-- Creates an export: from now on every change of the queue's values is also an entry of the table <export>_exports.
-- An entry has the key columns, old_<value> and new_<value> (null: the key had or has no value) and seq, which grows
-- per key in the order in which its passes commit. An SQL observer writes the entries in the pass's own transaction.
-- Export workers (pgcombine export run) deliver the entries and delete them.
--   export        lower-case name, at most 40 characters; also the name of its destination
--   exporter      postgres, files, webhook, or python: a function that the worker is given
--   target        the connection string without a password, the directory, or the URL
--   target_table  of the exporter postgres: the table that is kept equal to the queue's values, by default named as the
--                 export. The exporter makes it if it is missing (see export_target)
--   existing      whether the values that the queue has now are exported, too
--   compact       whether waiting entries of one key are delivered as one: first old, last new, last seq
--   batch         largest number of entries in one delivery
--   buckets       largest number of workers that deliver at the same time
-- Waits for the passes that run.
-- Tables written: export, export_bucket, destination_state, observer, queue, bucket, <export>_exports.
-- Errors: PC001 unknown queue; PC002 the export or a relation of its name exists; PC003 an invalid definition.
create or replace function pgcombine.create_export(export text, queue text, exporter text default 'python',
    target text default null, target_table text default null, existing boolean default false, compact boolean default true,
    batch integer default 10000, buckets integer default 4)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(create_export.queue);
    _name constant text := create_export.export;
    _definitions text;
    _keys text;
    _grantee regrole;
begin
    if _name is null or _name !~ '^[a-z_][a-z0-9_]{0,39}$' then
        raise exception 'invalid export name %', coalesce(quote_literal(_name), 'null')
            using errcode = 'PC003', hint = 'a to z, 0 to 9 and _, not a digit first, at most 40 characters';
    end if;
    if coalesce(create_export.exporter not in ('python', 'postgres', 'files', 'webhook'), true) then
        raise exception 'there is no exporter %', coalesce(quote_literal(create_export.exporter), 'null')
            using errcode = 'PC003', hint = 'exporters are postgres, files, webhook and python';
    end if;
    if create_export.exporter <> 'python' and create_export.target is null then
        raise exception 'exporter % needs a target', create_export.exporter
            using errcode = 'PC003', hint = 'target => a connection string without a password, a directory, or a URL';
    end if;
    if coalesce(create_export.buckets not between 1 and 1024 or create_export.batch < 1, true) then
        raise exception 'invalid export "%": buckets %, batch %', _name, create_export.buckets, create_export.batch
            using errcode = 'PC003', hint = 'buckets are 1 to 1024, batch is positive';
    end if;
    perform pgcombine_internal.refuse_password(create_export.target);

    -- of two sessions that create the same export, the second waits here until the first has committed
    insert into pgcombine.export (export, queue, exporter, target, target_table, buckets, batch, compact)
    values (_name, _queue.queue, create_export.exporter, create_export.target,
            case create_export.exporter when 'postgres' then coalesce(create_export.target_table, _name) end,
            create_export.buckets, create_export.batch, coalesce(create_export.compact, true))
    on conflict do nothing;
    if not found or to_regclass(format('pgcombine.%I', _name || '_exports')) is not null then
        raise exception 'export "%", or a relation named %_exports, exists', _name, _name
            using errcode = 'PC002', hint = 'drop it first, or choose another name';
    end if;
    -- A pass whose snapshot is older than this commit would leave the observer out. New versions of the buckets' rows
    -- make its claim fail (40001), and its worker runs it again.
    perform from pgcombine.bucket b where b.queue = _queue.queue order by b.bucket for update;
    update pgcombine.bucket b set bucket = b.bucket where b.queue = _queue.queue;

    insert into pgcombine.export_bucket (export, bucket) select _name, b from generate_series(0, create_export.buckets - 1) b;
    perform pgcombine_internal.add_destination('export', _name);

    select string_agg(format('%I %s%s not null', c.name, c.type, ' collate ' || c.collation), ', ' order by c.position)
               filter (where c.role = 'key')
           || string_agg(format(', %I %s%s', s.side || c.name, c.type, ' collate ' || c.collation), '' order by s.side desc, c.position)
               filter (where c.role = 'value'),
           string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key' and s.side = 'old_')
    into _definitions, _keys
    from pgcombine.queue_column c
    join (values ('old_'), ('new_')) s (side) on c.role = 'value' or s.side = 'old_'
    where c.queue = _queue.queue;
    begin
        execute format($create$create table pgcombine.%I (%s, seq bigint not null default nextval('pgcombine.export_sequence'))
                       partition by hash (%s)$create$, _name || '_exports', _definitions, _keys);
    exception when duplicate_column then
        raise exception 'queue "%" can''t be exported: %', _queue.queue, sqlerrm
            using errcode = 'PC003', hint = 'its columns may not be named seq, old_… or new_… as its entries'' are';
    end;
    for _bucket in 0 .. create_export.buckets - 1 loop
        execute format(
            'create table pgcombine.%I partition of pgcombine.%I for values with (modulus %s, remainder %s)
             with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1)',
            _name || '_exports_b' || to_char(_bucket, 'FM0000'), _name || '_exports', create_export.buckets, _bucket);
    end loop;
    execute format('create index on pgcombine.%I (seq)', _name || '_exports');
    perform pgcombine_internal.regenerate_export(_name);
    perform pgcombine_internal.grant_standing(_name, is_export => true);
    for _grantee in -- passes write entries, and roles that operate the queue put refused entries back
        select distinct a.grantee::regrole
        from pg_class c cross join lateral aclexplode(c.relacl) a
        where c.oid in (format('pgcombine.%I', _queue.queue || '_updates')::regclass, format('pgcombine.%I', _queue.queue || '_quarantine')::regclass)
          and a.privilege_type = 'DELETE' and a.grantee not in (0, c.relowner)
    loop
        execute format('grant insert on pgcombine.%I to %s', _name || '_exports', _grantee);
    end loop;

    if create_export.existing then
        perform pgcombine_internal.export_existing(_name);
    end if;
    perform pgcombine_internal.observe_export(_name);
end
$$;
