-- pgcombine.generate_enqueue(queue)
-- Makes the function <queue>_enqueue: an array for each column, keys first; a value column that isn't given, or is
-- null, takes its default. Appends these updates in the caller's transaction and returns how many.
-- Errors, of that function: PC004 the arrays are of different lengths; those of an insert into <queue>_updates.
create or replace function pgcombine.generate_enqueue(queue text)
returns void
language plpgsql
as $$
declare
    _made record;
begin
    select f.parameters, f.body into _made from pgcombine.enqueue_function(generate_enqueue.queue) f;
    if _made.body is not null then
        execute format('create or replace function pgcombine.%I(%s) returns bigint language plpgsql as %L',
            generate_enqueue.queue || '_enqueue', _made.parameters, _made.body);
    end if;
end
$$;
