-- pgcombine_internal.verify_generated(queue) → problems
-- The part of verify that compares the statements of passes and contributions, the views and the functions with what
-- regenerate makes, and the primary key of the values with the key columns.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.verify_generated(queue text)
returns setof text
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
    _hint constant text := 'run pgcombine db upgrade';
begin
    if not exists (
        select from pg_index i
        where i.indrelid = format('pgcombine.%I', _queue.queue || '_values')::regclass and i.indisprimary
            and i.indisvalid
          and (select string_agg(quote_ident(a.attname), ', ' order by k.place)
               from unnest(i.indkey::smallint[]) with ordinality as k (number, place)
               join pg_attribute a on a.attrelid = i.indrelid
                   and a.attnum = k.number) = pgcombine_internal.column_list(_queue.queue, 'key')) then
        return next format('pgcombine.%I doesn''t have the queue''s key columns as its primary key',
            _queue.queue || '_values');
    end if;
    if _queue.pass is distinct from pgcombine_internal.pass_parts(_queue.queue)
       or _queue.statement is distinct from pgcombine_internal.pass_template(_queue.queue) then
        return next format('the generated statement of passes is not up to date: %s', _hint);
    end if;
    if _queue.contribution is not null then -- otherwise a combiner may have no difference
        if _queue.contribution <> pgcombine_internal.contribution_sql(_queue.queue) then
            return next format('the generated statement of contributions is not up to date: %s', _hint);
        end if;
    end if;
    return query
    select format('view %s differs from the generated one: %s', c.oid::regclass, _hint)
    from (values ('_pending', pgcombine_internal.pending_sql(_queue.queue)),
        ('_current', pgcombine_internal.current_sql(_queue.queue))) v (suffix, query)
    join pg_class c on c.oid = to_regclass(format('pgcombine.%I', _queue.queue || v.suffix))
    where case when c.relkind <> 'v' then true
        else pgcombine_internal.normal_sql(rtrim(pg_get_viewdef(c.oid), ';'))
        <> pgcombine_internal.normal_sql(v.query) end;
    return query
    select format('function %s %s: %s', f.name, case when p.oid is null then 'is missing'
        else 'differs from the generated one' end, _hint)
    from pgcombine_internal.queue_functions(_queue.queue, pgcombine_internal.columns_of(_queue.queue)) g
    cross join lateral (select format('pgcombine.%I', g.name) as name) f
    left join pg_proc p on p.oid = to_regproc(f.name)
    where (p.prosrc, (select l.lanname from pg_language l where l.oid = p.prolang), p.provolatile, p.prosecdef,
           p.proconfig) is distinct from (g.body, g.language, left(g.volatility, 1)::"char", false, null::text[]);
end
$$;
