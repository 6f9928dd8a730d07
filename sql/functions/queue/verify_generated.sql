-- pgcombine.verify_generated(queue) → problems
-- The part of verify that compares what was made for a queue with what regenerate would make, and the primary key of its
-- values with its key.
create or replace function pgcombine.verify_generated(queue text)
returns setof text
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(verify_generated.queue);
    _hint constant text := format('select pgcombine.regenerate(%L)', _queue.queue);
    _function constant text := format('pgcombine.%I', _queue.queue || '_enqueue');
    _view regclass;
    _query text;
    _made record;
begin
    if not exists (
        select from pg_index i
        where i.indrelid = format('pgcombine.%I', _queue.queue || '_values')::regclass and i.indisprimary and i.indisvalid
          and (select array_agg(a.attname::text order by k.place)
               from unnest(i.indkey::smallint[]) with ordinality as k (number, place)
               join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number)
              = (select array_agg(c.name order by c.position) from pgcombine.queue_column c
                 where c.queue = _queue.queue and c.role = 'key')) then
        return next format('pgcombine.%I has no primary key of the queue''s key columns', _queue.queue || '_values');
    end if;
    if _queue.pass is distinct from pgcombine.generate_pass(_queue.queue, true) then
        return next format('its generated SQL is not up to date: %s', _hint);
    end if;
    for _view, _query in
        select to_regclass(format('pgcombine.%I', _queue.queue || v.suffix)), v.query
        from (values ('_pending', pgcombine.pending_sql(_queue.queue)), ('_current', pgcombine.current_sql(_queue.queue))) v (suffix, query)
    loop
        if (select c.relkind <> 'v' from pg_class c where c.oid = _view)
           or pgcombine.normal_sql(rtrim(pg_get_viewdef(_view), ';')) <> pgcombine.normal_sql(_query) then
            return next format('view %s isn''t as it was made: %s', _view, _hint);
        end if;
    end loop;
    select f.body into _made from pgcombine.enqueue_function(_queue.queue) f;
    if _made.body is not null then
        if not exists (select from pg_proc p where p.oid = to_regproc(_function)) then
            return next format('function %s is missing: %s', _function, _hint);
        elsif not exists (
            select from pg_proc p join pg_language l on l.oid = p.prolang
            where p.oid = to_regproc(_function) and p.prosrc = _made.body and l.lanname = 'plpgsql'
              and not p.prosecdef and p.proconfig is null) then
            return next format('function %s isn''t as it was made: %s', _function, _hint);
        end if;
    end if;
end
$$;
