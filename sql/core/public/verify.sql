-- pgcombine.verify(queue [, recount]) → (problem)
-- Checks a whole queue and returns its problems; no row: there is none. It reads one snapshot, so passes and enqueues
-- may go on.
--   recount  whether to compare the values with the attached tables, too (see recount)
-- Errors: PC001 unknown queue; those of recount.
create or replace function pgcombine.verify(queue text, recount boolean default false)
returns table (problem text)
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(verify.queue);
    _updates constant text := format('pgcombine.%I', _queue.queue || '_updates');
    _values constant text := format('pgcombine.%I', _queue.queue || '_values');
    _table regclass;
begin
    return query select * from pgcombine_internal.verify_relations(_queue.queue);
    if to_regclass(_updates) is null or to_regclass(_values) is null then
        return;
    end if;
    foreach _table in array array[_updates, _values]::regclass[] loop
        return query select * from pgcombine_internal.verify_columns(_queue.queue, _table);
        if found then
            return;
        end if;
        return query select * from pgcombine_internal.verify_partitions(_queue.queue, _table);
    end loop;

    return query select * from pgcombine_internal.verify_log(_queue.queue);
    return query execute format('select format(''%%s keys have values for which delete_when (%%s) holds'', count(*), $1) from %s
        where %s having count(*) > 0', _values, coalesce(_queue.delete_when, 'false'))
    using _queue.delete_when;
    return query select * from pgcombine_internal.verify_triggers(_queue.queue);
    if not exists (select from generate_series(0, _queue.partitions - 1) p, unnest(pgcombine_internal.segment_tables(_queue.queue, p)) s
                   where to_regclass(s) is null) then
        return query select * from pgcombine_internal.verify_generated(_queue.queue);
    end if;
    if to_regclass(format('pgcombine.%I', _queue.queue || '_quarantine')) is not null
       and to_regclass(format('pgcombine.%I', _queue.queue || '_quarantine_keys')) is not null then
        return query select * from pgcombine_internal.verify_quarantine(_queue.queue);
    end if;
    if verify.recount then
        return query select r.problem from pgcombine_internal.recount(_queue.queue) r;
    end if;
end
$$;
