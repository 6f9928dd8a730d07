-- pgcombine_internal.begin_fold(queue)
-- Makes the temporary table pg_temp.pgcombine_fold with the queue's columns. end_fold turns its rows into one update a
-- key. The table lasts until the transaction ends.
-- Errors: PC001 unknown queue; PC003 a combiner in Python.
create or replace function pgcombine_internal.begin_fold(queue text)
returns void
language plpgsql
as $$
declare
    _columns text;
begin
    perform pgcombine_internal.refuse_fold(begin_fold.queue);
    select string_agg(case c.role
            when 'key' then format('%I %s%s not null', c.name, c.type, ' collate ' || c.collation)
            else format('%I %s%s default %L', c.name, c.type, ' collate ' || c.collation, k.initial) end, ', ' order by c.position)
    into _columns
    from pgcombine.queue_column c left join pgcombine.combiner k using (combiner)
    where c.queue = begin_fold.queue;
    execute format('create temporary table pgcombine_fold (%s) on commit drop', _columns);
end
$$;
