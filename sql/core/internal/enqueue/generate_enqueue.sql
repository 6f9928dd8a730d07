-- pgcombine_internal.generate_enqueue(queue)
-- Makes the function <queue>_enqueue, which appends updates in the caller's transaction and returns their number. It
-- takes an array for each column, keys first. A value column that is missing or null takes its default.
-- Errors: PC001 unknown queue. Of <queue>_enqueue: PC004 the arrays are of different lengths; those of an insert into
-- <queue>_updates.
create or replace function pgcombine_internal.generate_enqueue(queue text)
returns void
language plpgsql
as $$
begin
    execute coalesce((
        select pgcombine_internal.fill($make$
                create or replace function pgcombine.{name}({parameters}) returns bigint language plpgsql as {body};
                comment on routine pgcombine.{name} is
                    'Appends updates, an array for each column; returns their number.'
            $make$,
            jsonb_build_object('name', quote_ident(generate_enqueue.queue || '_enqueue'),
                'parameters', f.parameters, 'body', quote_literal(f.body)))
        from pgcombine_internal.enqueue_function(generate_enqueue.queue) f where f.body is not null), '');
end
$$;
