-- pgcombine.generate_enqueue(queue)
-- Makes the function <queue>_enqueue: an array for each column, keys first; a value column that isn't given, or is
-- null, takes its default. Appends these updates in the caller's transaction and returns how many.
-- Errors, of that function: PC004 the arrays are of different lengths; those of an insert into <queue>_updates.
create or replace function pgcombine.generate_enqueue(queue text)
returns void
language plpgsql
as $$
begin
    execute coalesce((
        select format('create or replace function pgcombine.%I(%s) returns bigint language plpgsql as %L',
            generate_enqueue.queue || '_enqueue', f.parameters, f.body)
        from pgcombine.enqueue_function(generate_enqueue.queue) f where f.body is not null), '');
end
$$;
