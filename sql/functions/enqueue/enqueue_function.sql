-- pgcombine.enqueue_function(queue) → (parameters, body)
-- What generate_enqueue makes <queue>_enqueue of; null: there is none.
-- Where the queue has one bucket, many at once are one row, the first update as its own, the others in arrays: that saves
-- write-ahead log. A row holds some 64 updates at most, so that it stays on its page. Not so
--   by who may not insert into each column, or under row security, whose policies don't look into arrays
--   for a table that rebucket has exchanged since this call began: it waits until the insert holds the table's lock, so
--   the insert itself looks; to_regclass sees the catalog as it is, whatever the transaction's snapshot
-- No function is made where a column is an array or a composite itself, its type has no arrays, or it is named as
-- parameters are ($1).
-- Errors, of that function: PC004 the arrays are of different lengths.
create or replace function pgcombine.enqueue_function(queue text, out parameters text, out body text)
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(enqueue_function.queue);
    _select text;
    _fit text;
    _c record;
begin
    select string_agg(format('%I %s[]%s', c.name, c.type, case when c.role = 'value' then ' default null' else '' end), ', ' order by c.position)
               filter (where c.name !~ '^\$[0-9]+$') as parameters,
           count(*) filter (where c.name ~ '^\$[0-9]+$') as oddly_named,
           string_agg(format('%I', c.name), ', ' order by c.position) as columns,
           string_agg(case when c.role = 'key' then format('$%s', c.position + 1)
                           else format('coalesce($%s, array_fill(%L::%s, array[_count]))', c.position + 1, k.initial, c.type) end,
                      ', ' order by c.position) as arrays,
           string_agg(format('cardinality($%s)', c.position + 1), ', ' order by c.position) as counts,
           string_agg(format('coalesce(array_lower($%1$s, 1), 1), coalesce(array_ndims($%1$s), 1)', c.position + 1), ', ' order by c.position) as shapes,
           string_agg(format('pgcombine_%s', c.position), ', ' order by c.position) as packs,
           string_agg(case when c.role = 'key' then format('$%s as pgcombine_%s', c.position + 1, c.position)
                           else format('coalesce($%s, array_fill(%L::%s, array[_count])) as pgcombine_%s', c.position + 1, k.initial, c.type, c.position) end,
                      ', ' order by c.position) as named,
           string_agg(format('a.pgcombine_%s[p.i]', c.position), ', ' order by c.position) as single_firsts,
           string_agg(format('case when p.i < _count then a.pgcombine_%s[p.i + 1 : p.i + 63] end', c.position), ', ' order by c.position) as single_rests,
           bool_and(t.typarray <> 0 and b.typcategory not in ('A', 'C')) as arrays_exist
    into _c
    from pgcombine.queue_column c
    left join pgcombine.combiner k using (combiner)
    join pg_type t on t.oid = c.type::regtype
    join pg_type b on b.oid = pgcombine.base_type(t.oid)
    where c.queue = _queue.queue;
    if not _c.arrays_exist or _c.oddly_named > 0 then
        return;
    end if;
    if pgcombine.packs(_queue.queue) then
        _select := format($select$select %s, %s
        from (select %s) as a, generate_series(1, _count, 64) as p (i)$select$,
            _c.single_firsts, _c.single_rests, _c.named);
        _fit := format(' and to_regclass(%L) is not null and 1 = all (array[%s])', -- subscripts count from 1
            (pgcombine.segment_tables(_queue.queue, 0))[_queue.segments + 1], _c.shapes);
    end if;
    parameters := _c.parameters;
    body := format($body$
declare
    _count constant integer := coalesce(cardinality($1), 0);
begin
    if _count <> any (array[%1$s]) then
        raise exception 'the columns of the updates for queue "%2$s" are of different lengths: %%', array[%1$s]
            using errcode = 'PC004', hint = 'give an array of equal length for each column';
    end if;$body$ || case when _select is null then '' else $body$
    if _count >= %3$s and has_table_privilege('pgcombine.%7$I', 'insert') and not row_security_active('pgcombine.%7$I') then
        insert into pgcombine.%7$I (%5$s, %8$s)
        %9$s
        where %6$s%10$s; -- plain rows tell what is wrong
        if found then
            return _count;
        end if;
    end if;$body$ end || $body$
    insert into pgcombine.%7$I (%5$s) select * from unnest(%4$s);
    return _count;
end
$body$,
        _c.counts, _queue.queue, 2, _c.arrays, _c.columns,
        pgcombine.short_keys(_queue.queue, 'a.pgcombine_%s'),
        _queue.queue || '_updates', _c.packs, _select, _fit);
end
$$;
