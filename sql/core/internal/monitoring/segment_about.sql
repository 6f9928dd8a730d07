-- pgcombine_internal.segment_about(queue, relation, condition) → (pending, oldest)
-- Estimates the number of pending updates in a segment, and the id of the oldest one. The function reads all pages of a
-- small segment. Of a large segment it reads one row on each of 32 pages, and the last pages.
--   condition  see bucket_log
--   oldest     null: none is pending. In a large segment an estimate
create or replace function pgcombine_internal.segment_about(queue text, relation text, condition text,
    out pending bigint, out oldest bigint)
language plpgsql stable
as $$
declare
    _small constant integer := 4; -- pages
    _sample constant integer := 32;
    _spare constant integer := 64; -- pages at the end of a table that may be empty
    _pages constant bigint := pg_relation_size(relation::regclass) / current_setting('block_size')::bigint;
    _counts constant text := format('select count(*), count(*) filter (where %1$s), min(pgcombine_tx) filter (where '
        '%1$s), max(pgcombine_tx) filter (where %1$s) from ', condition);
    _found bigint;
    _tail bigint;
    _tail_oldest bigint;
    _newest bigint;
begin
    if _pages <= _small then
        execute format('select count(*), min(pgcombine_tx) from %s',
            pgcombine_internal.log_sql(segment_about.queue, array[relation], condition))
        into pending, oldest;
        return;
    end if;
    foreach _found in array array[2, _spare + 2] loop
        execute _counts || pgcombine_internal.log_sql(segment_about.queue, array[relation],
            'true', format('ctid >= ''(%s,0)''', greatest(0, _pages - _found)))
        into _found, _tail, _tail_oldest, _newest;
        exit when _found > 0;
    end loop;
    execute _counts || pgcombine_internal.log_sql(segment_about.queue, array[relation], 'true',
        format('ctid = any (%L::tid[])',
            array(select format('(%s,1)', _pages * k / _sample) from generate_series(0, _sample - 1) k)))
    into _found, pending, oldest, _newest;
    if pending > 0 then
        oldest := oldest - (_newest - oldest) / pending;
        pending := round(pgcombine_internal.updates_about(segment_about.queue,
            array[relation]) * pending::numeric / _found);
    end if;
    pending := greatest(pending, _tail);
    oldest := least(oldest, _tail_oldest);
end
$$;
