-- pgcombine_internal.quarantine_release(queue, key, put_back) → bigint
-- Ends the quarantine of a key, or of all keys of the queue (key null); returns the number of their quarantined
-- updates.
--   put_back  true: append the updates to the log, so that they are pending again; false: delete them
-- The function claims all buckets first, so that no pass quarantines updates meanwhile.
-- Tables written: <queue>_quarantine, <queue>_quarantine_keys, quarantined_key, <queue>_updates.
-- Errors: PC001 unknown queue; PC004 the key isn't an object of the key columns, or its values don't fit their types;
-- PC009 the key isn't quarantined; 42501 the caller lacks the right work; 40001 above read committed:
-- keys were quarantined, or buckets changed, since the snapshot. With put_back also: PC010 the queue is full; PC012 the
-- database is a copy in which post_restore has not run yet.
create or replace function pgcombine_internal.quarantine_release(queue text, key jsonb, put_back boolean)
returns bigint
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(quarantine_release.queue);
    _quarantine constant text := format('pgcombine.%I', _queue.queue || '_quarantine');
    _keys constant text[] := array(
        select c.name from pgcombine.queue_column c where c.queue = _queue.queue and c.role = 'key'
        order by c.position);
    _id bigint;
    _updates bigint;
begin
    perform pgcombine_internal.require_right(_queue.queue, 'work');
    perform pgcombine_internal.claim_buckets(_queue.queue);
    if key is not null then
        perform pgcombine_internal.require(
            jsonb_typeof(key) = 'object' and key ?& _keys and key - _keys = '{}', 'PC004',
            format('%s is no key of queue "%s"', key, _queue.queue),
            format('give a JSON object with: %s', array_to_string(_keys, ', ')));
        begin
            execute format('select pgcombine_quarantined.pgcombine_key from jsonb_populate_record(null::%s, $1) as given
                            join %s on %s', _quarantine, pgcombine_internal.quarantined_keys(_queue.queue),
                pgcombine_internal.key_is_quarantined(_queue.queue))
            into _id using key;
        exception when data_exception then
            raise exception '% is no key of queue "%": %', key, _queue.queue, sqlerrm
                using errcode = 'PC004',
                    hint = 'select key from pgcombine.quarantine lists the keys in the form to give';
        end;
    end if;
    perform pgcombine_internal.require(key is null or _id is not null, 'PC009',
        format('key %s of queue "%s" isn''t quarantined', key, _queue.queue),
        'select * from pgcombine.quarantine lists the quarantined ones');
    delete from pgcombine.quarantined_key k where k.queue = _queue.queue and k.id = coalesce(_id, k.id);
    execute format('delete from pgcombine.%I where pgcombine_key = coalesce($1, pgcombine_key)',
        _queue.queue || '_quarantine_keys')
    using _id;
    if put_back then
        execute pgcombine_internal.fill('with moved as (delete from {quarantine} where pgcombine_key = coalesce($1, '
            'pgcombine_key) returning {columns}),
                             back as (insert into pgcombine.{updates} ({columns}) select {columns} from moved)
                        select count(*) from moved',
            jsonb_build_object('quarantine', _quarantine, 'updates', quote_ident(_queue.queue || '_updates'),
                'columns', pgcombine_internal.column_list(_queue.queue)))
        into _updates using _id;
    else
        execute format('with moved as (delete from %s where pgcombine_key = coalesce($1, pgcombine_key) returning 1)
                        select count(*) from moved', _quarantine)
        into _updates using _id;
    end if;
    return _updates;
end
$$;
