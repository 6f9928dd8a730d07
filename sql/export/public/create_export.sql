-- pgcombine.create_export(export, queue [, exporter, target, target_table, existing, compact, batch, buckets, format])
-- Creates an export: from now on every change that a pass makes is also an entry of the table <export>_exports. An
-- entry has the key columns, old_<value> (null: the key had no value), new_<value> (null: the key has no value) and the
-- number seq. The entries of a key have growing seq, in the order in which passes commit. An SQL observer writes the
-- entries in the pass's transaction.
-- Export workers (pgcombine export run) deliver the entries and delete them.
--   export        lower-case name, at most 40 characters; also the name of its destination
--   exporter      postgres, files, webhook, or python (a function in the worker's program)
--   target        the connection string without a password, the directory, or the URL; the exporter python needs none
--   target_table  only for the exporter postgres: the table that is kept equal to the queue's values. Its default name
--                 is that of the export. The exporter makes a missing table (see export_target)
--   existing      whether the values that the queue has now are exported, too
--   compact       whether entries of one key in a batch are delivered as one: first old, last new, last seq
--   batch         largest number of entries in one delivery
--   buckets       largest number of loops of workers that deliver at the same time
--   format        only for the exporter webhook: cloudevents sends each entry as a CloudEvent. An entry then also has
--                 pgcombine_at, the start of the transaction that wrote the entry
-- The call waits for running passes.
-- Tables written: export, export_bucket, component_table, destination_state, observer, queue, bucket, <export>_exports.
-- Errors: PC001 unknown queue; PC002 the export or a relation of its name exists; PC003 an invalid definition, a target
-- with a secret, or a key column named seq; with existing, another isolation level than read committed; 40001 another
-- session has changed the queue since the snapshot; 42501 the caller doesn't own the schema.
create or replace function pgcombine.create_export(export text, queue text, exporter text default 'python',
    target text default null, target_table text default null, existing boolean default false,
    compact boolean default true, batch integer default 10000, buckets integer default 4,
    format text default null)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(create_export.queue);
    _name constant text := create_export.export;
    _table constant text := create_export.export || '_exports';
    _keys constant text := pgcombine_internal.column_list(_queue.queue, 'key');
    _definitions constant text := concat_ws(', ',
        pgcombine_internal.column_list(_queue.queue, 'key', '{name} {type}{collate} not null'),
        pgcombine_internal.column_list(_queue.queue, 'value', '{old} {type}{collate}'),
        pgcombine_internal.column_list(_queue.queue, 'value', '{new} {type}{collate}'));
    _problem text;
    _hint text;
begin
    select r.problem, r.hint into _problem, _hint
    from (values
        (_name ~ '^[a-z_][a-z0-9_]{0,39}$', 'invalid export name ' || coalesce(quote_literal(_name), 'null'),
         'a to z, 0 to 9 and _, not a digit first, at most 40 characters'),
        (exporter in ('python', 'postgres', 'files', 'webhook'),
            'there is no exporter ' || coalesce(quote_literal(exporter), 'null'),
         'exporters are postgres, files, webhook and python'),
        (exporter = 'python' or target is not null, format('exporter %s needs a target', exporter),
         'target => a connection string without a password, a directory, or a URL'),
        (exporter = 'postgres' or target_table is null, format('exporter %s has no table', exporter),
            'leave out target_table'),
        (create_export.format is null or create_export.format = 'cloudevents' and exporter = 'webhook',
            format('exporter %s has no format %L', exporter, create_export.format),
            'leave out format, or pass format => ''cloudevents'' with the exporter webhook'),
        (create_export.buckets between 1 and 1024 and batch >= 1,
            format('invalid export "%s": buckets %s, batch %s', _name,
            coalesce(create_export.buckets::text, 'null'), coalesce(batch::text, 'null')),
                'buckets are 1 to 1024, batch is positive'),
        -- other roles can read the address
        (pgcombine_internal.holds_secret(create_export.target) is not true,
            'an address with a password or another secret can''t be registered',
            'leave the password out: put it into a password file (~/.pgpass), a service or PGPASSWORD, and the user '
            'of a web address into ~/.netrc; pgcombine.ExportWorker(dsn, export, target=…) takes a web address with a '
            'secret parameter')) r (holds, problem, hint)
    where r.holds is not true;
    if found then
        raise exception using errcode = 'PC003', message = _problem, hint = _hint;
    end if;

    perform pgcombine_internal.require_owner();
    perform pgcombine_internal.claim_buckets(_queue.queue,
        case when create_export.existing then format('export "%s" with the existing values', _name) end);

    -- of two sessions that create the same export for two queues, the second waits here until the first has ended
    insert into pgcombine.export (export, queue, exporter, target, target_table, buckets, batch, compact, format)
    values (_name, _queue.queue, create_export.exporter, create_export.target,
            case create_export.exporter when 'postgres' then coalesce(create_export.target_table, _name) end,
            create_export.buckets, create_export.batch, coalesce(create_export.compact, true), create_export.format)
    on conflict do nothing;
    perform pgcombine_internal.require(found
        and to_regclass(format('pgcombine.%I', _name || '_exports')) is null, 'PC002',
        format('export "%s", or a relation named %s_exports, exists', _name, _name),
        'drop it first, or choose another name');
    insert into pgcombine.export_bucket (export, bucket) select _name, b
        from generate_series(0, create_export.buckets - 1) b;
    perform pgcombine_internal.add_destination('export', _name);

    begin
        execute format($create$create table pgcombine.%I (%s,
            seq bigint not null default nextval('pgcombine.export_sequence')%s)
                       partition by hash (%s)$create$, _table, _definitions,
            case when create_export.format is not null then ', pgcombine_at timestamptz not null default now()' end,
            _keys);
    exception when duplicate_column then
        raise exception 'queue "%" can''t be exported: %', _queue.queue, sqlerrm
            using errcode = 'PC003',
                hint = 'no key column may be named seq, since the entries have a column of this name';
    end;
    for _bucket in 0 .. create_export.buckets - 1 loop
        execute format(
            'create table pgcombine.%I partition of pgcombine.%I for values with (modulus %s, remainder %s)
             with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
                 autovacuum_vacuum_insert_threshold = -1)',
            _name || '_exports_b' || to_char(_bucket, 'FM0000'), _table, create_export.buckets, _bucket);
        execute format('comment on table pgcombine.%I is %L', _name || '_exports_b' || to_char(_bucket, 'FM0000'),
            format('Partition %s of %s.', _bucket, _table));
    end loop;
    execute format('comment on table pgcombine.%I is %L', _table,
        format('Changes of queue %s that export %s has not delivered yet.', _queue.queue, _name));
    execute (
        select string_agg(format('comment on column pgcombine.%I.%I is %L', _table, d.name, d.meaning), '; ')
        from (
            select c.name, format('Key: %s.', c.type) as meaning from pgcombine.queue_column c
            where c.queue = _queue.queue and c.role = 'key'
            union all
            select v.prefix || c.name, format(v.meaning, c.name)
            from pgcombine.queue_column c
            cross join (values ('old_', '%s before the change; null: the key had none.'),
                               ('new_', '%s after the change; null: the key has none.')) v (prefix, meaning)
            where c.queue = _queue.queue and c.role = 'value'
            union all
            values ('seq', 'Number of the entry: later entries of a key have higher numbers.')
            union all
            select 'pgcombine_at', 'Start of the transaction that wrote the entry.'
            where create_export.format is not null) d);
    execute format('create index on pgcombine.%I (seq)', _table);
    insert into pgcombine.component_table (name, queue) values (_table, _queue.queue);
    perform pgcombine_internal.regenerate_export(_name);
    perform pgcombine_internal.keep_rights();
    perform pgcombine_internal.start_export(_name, create_export.existing);
end
$$;
