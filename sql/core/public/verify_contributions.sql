-- pgcombine.verify_contributions(queue) → (problem)
-- Compares the current values of a queue with the sums of all contributions. Returns one row for each key that differs:
-- something else was enqueued for it, or it is quarantined or has expired.
-- Columns of type real and double precision aren't compared, since the last digits of their sums depend on the order.
-- Errors: PC001 unknown queue; 22003 or 22008 a sum of type money or interval is beyond its type's range; 42501 the
-- caller lacks the right work.
create or replace function pgcombine.verify_contributions(queue text)
returns table (problem text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
    _types constant jsonb := ( -- sums may be beyond the range of their column
        select coalesce(jsonb_object_agg(c.name, 'numeric'), '{}') from pgcombine.queue_column c
        where c.queue = _queue.queue and c.combiner in ('sum', 'count') and pgcombine_internal.base_type(
            c.type::regtype) = any ('{smallint,integer,bigint,numeric}'::regtype[]));
begin
    perform pgcombine_internal.require_right(_queue.queue, 'work');
    if _queue.contribution is null then
        return;
    end if;
    -- a value that is missing equals one that changes nothing, which is the difference of a value from itself
    return query execute (
        select format('select format(''key %%s: '', row(%s)) || concat_ws('', '', %s) from (%s) as pgcombine_both '
            'where %s', pgcombine_internal.column_list(_queue.queue, 'key'),
            coalesce(string_agg(format('case when %s then format(''%%s is %%s, not %%s'', %L, '
                'coalesce(%I::text, ''null''), coalesce(%I::text, ''null'')) end', d.differs, c.name, n.old, n.new),
                ', ' order by c.position), 'null'),
            pgcombine_internal.contribution_parts(_queue.queue,
                format('pgcombine.%I', _queue.queue || '_contributions'),
                format('(select *, true as pgcombine_row from pgcombine.%I) as c', _queue.queue || '_current'), _types),
            coalesce(string_agg(d.differs, ' or '), 'false'))
        from pgcombine.queue_column c
        join pgcombine.combiner k using (combiner)
        cross join lateral (select 'old_' || c.name as old, 'new_' || c.name as new,
                                   format('coalesce(%I, %I)', 'new_' || c.name, 'old_' || c.name) as either) n
        cross join lateral coalesce(_types ->> c.name, c.type) t (type)
        cross join lateral pgcombine_internal.differ_expression(t.type,
            pgcombine_internal.expand(k.difference, quote_ident(n.old), quote_ident(n.new), t.type),
            pgcombine_internal.expand(k.difference, n.either, n.either, t.type)) d (differs)
        where c.queue = _queue.queue and c.role = 'value'
            and pgcombine_internal.base_type(c.type::regtype) <> all ('{real,double precision}'::regtype[]));
end
$$;
