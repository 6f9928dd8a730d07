-- pgcombine_internal.python_observers(queue, observers, combiners) → text[]
-- Returns the Python observers of a queue, in the order in which they run.
--   observers  those that the caller can run
--   combiners  the columns whose Python combiner the caller can run
-- Errors: PC008 the queue has others.
create or replace function pgcombine_internal.python_observers(queue text, observers text[], combiners text[])
returns text[]
language plpgsql stable
as $$
declare
    _observe constant text[] := array(
        select o.observer from pgcombine.observer o where o.queue = python_observers.queue and o.language = 'python' order by o.position);
    _lacking constant text := array_to_string(array(
        select format('combiner of column "%s"', c.name) from pgcombine.queue_column c
        where c.queue = python_observers.queue and c.combiner = 'python' and not c.name = any (combiners) order by c.position)
        || array(select format('observer "%s"', o) from unnest(_observe) o where not o = any (observers)), ', ');
begin
    if _lacking <> '' then
        raise exception 'queue "%" has functions in Python that can''t be run here: %', python_observers.queue, _lacking
            using errcode = 'PC008', hint = 'pgcombine worker --app module:attribute runs them';
    end if;
    return _observe;
end
$$;
