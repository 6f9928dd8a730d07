-- pgcombine_internal.recount(queue) → (problem)
-- Compares a queue's values, together with pending and held updates, with a recount of all attached tables in one
-- snapshot.
-- Returns one row with the number of keys that differ and a row for each of the first ten; no row: all keys agree.
-- A key differs if the triggers missed a change of a table (see attach). It also differs if another program enqueues
-- into the queue, or if a table was attached without its existing rows.
-- Values of type real and double precision may differ by a millionth.
-- The mappings run with the caller's rights. So the tables must belong to the caller, to a role whose rights the caller
-- has, to the schema's owner or to a superuser. The caller must be able to read all rows of the tables.
-- Errors: PC001 unknown queue; PC003 no table is attached; 42501 row security hides rows, or a table belongs to another
-- role.
create or replace function pgcombine_internal.recount(queue text)
returns table (problem text)
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(recount.queue);
    _sources constant regclass[] := array(
        select a.source from pgcombine.attachment a join pg_class c on c.oid = a.source
        where a.queue = _queue.queue order by a.id);
    _row record;
begin
    perform pgcombine_internal.require(_sources <> '{}', 'PC003', format('no table is attached to queue "%s": there is nothing to recount', _queue.queue),
        'leave recount out');
    perform pgcombine_internal.refuse_recount(_sources);
    for _row in execute pgcombine_internal.recount_sql(_queue.queue) loop
        if _row.number = 1 then
            problem := format('%s %s from a recount of %s: a trigger missed a change, or another program enqueues, too',
                _row.keys, case _row.keys when 1 then 'key differs' else 'keys differ' end, array_to_string(_sources, ', '));
            return next;
        end if;
        problem := _row.sentence;
        return next;
    end loop;
end
$$;
