-- pgcombine.python_observers(queue, observers, combiners) → text[]
-- The Python observers of a queue, in the order in which they run.
--   observers, combiners  those that the caller has functions for, and the columns whose Python combiner it has
-- Errors: PC008 others are declared.
create or replace function pgcombine.python_observers(queue text, observers text[], combiners text[])
returns text[]
language plpgsql stable
as $$
declare
    _lacking text;
    _observe text[];
begin
    select string_agg(format('observer "%s"', o.observer), ', ' order by o.position)
               filter (where not o.observer = any (python_observers.observers)),
           coalesce(array_agg(o.observer order by o.position), '{}')
    into _lacking, _observe
    from pgcombine.observer o where o.queue = python_observers.queue and o.language = 'python';
    select concat_ws(', ', string_agg(format('combiner of column "%s"', c.name), ', ' order by c.position), _lacking)
    into _lacking
    from pgcombine.queue_column c
    where c.queue = python_observers.queue and c.combiner = 'python' and not c.name = any (python_observers.combiners);
    if _lacking <> '' then
        raise exception 'queue "%" has functions in Python that can''t be run here: %', python_observers.queue, _lacking
            using errcode = 'PC008', hint = 'pgcombine worker --app module:attribute runs them';
    end if;
    return _observe;
end
$$;
