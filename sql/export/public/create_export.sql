-- pgcombine.create_export(export, queue [, exporter, target, target_table, existing, compact, batch, format])
-- Creates an export: from now on every change that a pass makes is also delivered to a target. Passes write the changes
-- into the table <queue>_changes, once for all exports and the feed of the queue. Export workers (pgcombine export run)
-- deliver them as entries, and store for each bucket how far they are. The view <export>_exports has the entries that
-- are still to be delivered. An entry has the key columns, old_<value> (null: the key had no value), new_<value> (null:
-- the key has no value) and the number seq. The entries of a key have growing seq, in the order in which passes commit.
--   export        lower-case name, at most 40 characters; also the name of its destination
--   exporter      postgres, files, webhook, or python (a function in the worker's program)
--   target        the connection string without a password, the directory, or the URL; the exporter python needs none
--   target_table  only for the exporter postgres: the table that is kept equal to the queue's values. Its default name
--                 is that of the export. The exporter makes a missing table (see export_target)
--   existing      whether the values that the queue has now are exported, too (see begin_full_state)
--   compact       whether entries of one key in a batch are delivered as one: first old, last new, last seq
--   batch         largest number of entries in one delivery
--   format        only for the exporter webhook: cloudevents sends each entry as a CloudEvent. An entry then also has
--                 pgcombine_at, the start of the transaction that wrote the change
-- As many workers can deliver at the same time as the queue has buckets. The call waits for running passes.
-- Tables written: export, export_bucket, destination_state; those of keep_changes.
-- Errors: PC001 unknown queue; PC002 the export or a relation of its name exists; PC003 an invalid definition, a target
-- with a secret, or a key column named seq; with existing, another isolation level than read committed; 40001 another
-- session has changed the queue since the snapshot; 42501 the caller doesn't own the schema.
create or replace function pgcombine.create_export(export text, queue text, exporter text default 'python',
    target text default null, target_table text default null, existing boolean default false,
    compact boolean default true, batch integer default 10000, format text default null)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(create_export.queue);
    _name constant text := create_export.export;
    _export pgcombine.export;
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
        (create_export.batch >= 1, format('invalid export "%s": batch %s', _name,
            coalesce(create_export.batch::text, 'null')), 'batch is positive'),
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
    insert into pgcombine.export (export, queue, exporter, target, target_table, batch, compact, format)
    values (_name, _queue.queue, create_export.exporter, create_export.target,
            case create_export.exporter when 'postgres' then coalesce(create_export.target_table, _name) end,
            create_export.batch, coalesce(create_export.compact, true), create_export.format)
    on conflict do nothing
    returning * into _export;
    perform pgcombine_internal.require(found
        and to_regclass(format('pgcombine.%I', _name || '_exports')) is null, 'PC002',
        format('export "%s", or a relation named %s_exports, exists', _name, _name),
        'drop it first, or choose another name');
    perform pgcombine_internal.add_destination('export', _name);
    begin
        perform pgcombine_internal.start_export(_export, create_export.existing);
    exception when duplicate_column then
        raise exception 'queue "%" can''t be exported: %', _queue.queue, sqlerrm
            using errcode = 'PC003',
                hint = 'no key column may be named seq, since the entries have a column of this name';
    end;
end
$$;
