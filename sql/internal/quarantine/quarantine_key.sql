-- pgcombine_internal.quarantine_key(queue, key [, attempts, sqlstate, error]) → bigint
-- Quarantines a key: passes move its updates into <queue>_quarantine instead of combining them. Returns the key's
-- number there. A pass under way may still combine updates that were enqueued before.
--   key       JSON object of the key's columns
--   attempts  number of passes that failed in a row
--   sqlstate, error  how they failed
-- Tables written: quarantined_key, <queue>_quarantine_keys.
-- Errors: PC001 unknown queue; PC004 the key isn't an object of the key columns; 23505 the key is quarantined already;
-- 42501 the caller may not run passes.
create or replace function pgcombine_internal.quarantine_key(queue text, key jsonb, attempts integer default 0, sqlstate text default null,
    error text default 'by hand')
returns bigint
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(quarantine_key.queue);
    _id bigint;
begin
    perform pgcombine_internal.require_right(_queue.queue, 'work');
    perform pgcombine_internal.require_key(_queue.queue, quarantine_key.key);
    insert into pgcombine.quarantined_key (queue, key, updates, attempts, sqlstate, error)
    values (_queue.queue, quarantine_key.key, 0, quarantine_key.attempts, quarantine_key.sqlstate, quarantine_key.error)
    returning id into _id;
    execute format('insert into pgcombine.%I select %s, $2 from jsonb_populate_record(null::pgcombine.%I, $1)',
        _queue.queue || '_quarantine_keys', pgcombine_internal.column_list(_queue.queue, 'key'), _queue.queue || '_quarantine')
    using quarantine_key.key, _id;
    return _id;
end
$$;
