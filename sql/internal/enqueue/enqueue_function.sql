-- pgcombine_internal.enqueue_function(queue) → (parameters, body)
-- Returns the parameters and the body of <queue>_enqueue. Both are null if a column is an array or a composite, has a
-- type without arrays, or is named like a parameter ($1).
-- Where the queue packs, the function writes many updates as few rows: the first update in the row's own columns, the
-- others in arrays. That saves write-ahead log. A row holds at most 64 updates, so that it stays on its page.
-- It writes plain rows instead
--   if the caller may not insert into each column, or row security is active: its policies don't look into arrays
--   if rebucket has exchanged the table since the call began. The insert waits for the table's lock and only then
--   checks; to_regclass sees the current catalog, whatever the transaction's snapshot.
-- Errors: PC001 unknown queue. Of <queue>_enqueue: PC004 the arrays are of different lengths.
create or replace function pgcombine_internal.enqueue_function(queue text, out parameters text, out body text)
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(enqueue_function.queue);
    _updates constant text := format('pgcombine.%I', _queue.queue || '_updates');
    _columns constant text := pgcombine_internal.column_list(_queue.queue);
    _pack text := '';
    _c record;
begin
    select string_agg(format('%I %s[]%s', c.name, c.type, case when c.role = 'value' then ' default null' else '' end), ', ' order by c.position) as parameters,
           string_agg(a.given, ', ' order by c.position) as arrays,
           string_agg(format('%s as pgcombine_%s', a.given, c.position), ', ' order by c.position) as named,
           string_agg(format('cardinality($%s)', c.position + 1), ', ' order by c.position) as counts,
           string_agg(format('coalesce(array_lower($%1$s, 1), 1), coalesce(array_ndims($%1$s), 1)', c.position + 1), ', ' order by c.position) as shapes,
           bool_and(t.typarray <> 0 and b.typcategory not in ('A', 'C') and c.name !~ '^\$[0-9]+$') as possible
    into _c
    from pgcombine.queue_column c
    left join pgcombine.combiner k using (combiner)
    join pg_type t on t.oid = c.type::regtype
    join pg_type b on b.oid = pgcombine_internal.base_type(t.oid)
    cross join lateral (select case c.role when 'key' then format('$%s', c.position + 1)
                                   else format('coalesce($%s, array_fill(%L::%s, array[_count]))', c.position + 1, k.initial, c.type) end) a (given)
    where c.queue = _queue.queue;
    if not _c.possible then
        return;
    end if;
    if _queue.packs then
        _pack := format($pack$
    if _count >= 2 and has_table_privilege(%1$L, 'insert') and not row_security_active(%1$L) then
        insert into %1$s (%2$s, %3$s)
        select %4$s, %5$s
        from (select %6$s) as a, generate_series(1, _count, 64) as p (i)
        where %7$s and to_regclass(%8$L) is not null and 1 = all (array[%9$s]); -- subscripts count from 1; plain rows tell what is wrong
        if found then
            return _count;
        end if;
    end if;$pack$,
            _updates, _columns, pgcombine_internal.column_list(_queue.queue, form => 'pgcombine_%2$s'),
            pgcombine_internal.column_list(_queue.queue, form => 'a.pgcombine_%2$s[p.i]'),
            pgcombine_internal.column_list(_queue.queue, form => 'case when p.i < _count then a.pgcombine_%2$s[p.i + 1 : p.i + 63] end'),
            _c.named, pgcombine_internal.short_keys(_queue.queue, 'a.pgcombine_%s'),
            (pgcombine_internal.segment_tables(_queue.queue, 0))[_queue.segments + 1], _c.shapes);
    end if;
    parameters := _c.parameters;
    body := format($body$
declare
    _count constant integer := coalesce(cardinality($1), 0);
begin
    if _count <> any (array[%1$s]) then
        raise exception 'the columns of the updates for queue "%2$s" are of different lengths: %%', array[%1$s]
            using errcode = 'PC004', hint = 'give an array of equal length for each column';
    end if;%3$s
    insert into %4$s (%5$s) select * from unnest(%6$s);
    return _count;
end
$body$, _c.counts, _queue.queue, _pack, _updates, _columns, _c.arrays);
end
$$;
