-- pgcombine.verify(queue) → (problem)
-- Checks a whole queue and returns one row for each problem. The call changes nothing. Passes and enqueues continue
-- meanwhile. Components add checks of their own (see the table hook). If <queue>_updates or <queue>_values is missing
-- or has wrong columns, the call returns only the problems that verify_structure finds. If a segment is missing, the
-- call leaves out verify_generated. If a table of the quarantine is missing, it leaves out verify_quarantine.
-- Errors: PC001 unknown queue; 42501 the caller doesn't own the schema; those of components.
create or replace function pgcombine.verify(queue text)
returns table (problem text)
language plpgsql stable
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(verify.queue);
    _updates constant text := format('pgcombine.%I', _queue.queue || '_updates');
    _values constant text := format('pgcombine.%I', _queue.queue || '_values');
    _ends boolean;
    _stop boolean := false;
    _query text;
begin
    perform pgcombine_internal.require_owner();
    for problem, _ends in select s.problem, s.ends from pgcombine_internal.verify_structure(_queue.queue) s loop
        return next;
        _stop := _stop or _ends;
    end loop;
    if _stop then
        return;
    end if;
    return query
    select p.* from pg_class c cross join lateral pgcombine_internal.verify_partitions(_queue.queue, c.oid) p
    where c.oid = _values::regclass or c.relkind = 'p' and exists (
        select from pg_inherits i where i.inhrelid = c.oid and i.inhparent = _updates::regclass);

    return query select * from pgcombine_internal.verify_log(_queue.queue);
    return query execute format('select format(''%%s keys have values for which delete_when (%%s) holds'', count(*), '
        '$1) from %s
        where %s having count(*) > 0', _values, coalesce(_queue.delete_when, 'false'))
    using _queue.delete_when;
    if not exists (select from generate_series(0, _queue.partitions - 1) p,
        unnest(pgcombine_internal.segment_tables(_queue.queue, p)) s
                   where to_regclass(s) is null) then
        return query select * from pgcombine_internal.verify_generated(_queue.queue);
    end if;
    if to_regclass(format('pgcombine.%I', _queue.queue || '_quarantine')) is not null
       and to_regclass(format('pgcombine.%I', _queue.queue || '_quarantine_keys')) is not null then
        return query select * from pgcombine_internal.verify_quarantine(_queue.queue);
    end if;
    for _query in select h.query from pgcombine.hook h where h.event = 'verify' loop
        return query execute _query using _queue.queue;
    end loop;
end
$$;
