-- pgcombine_internal.create_enqueue(queue, columns)
-- Creates or replaces <queue>_enqueue of a queue or of a front, unless its columns don't allow it (see
-- enqueue_function).
create or replace function pgcombine_internal.create_enqueue(queue text, columns jsonb)
returns void
language plpgsql
as $$
declare
    _enqueue record;
begin
    select f.* into _enqueue from pgcombine_internal.enqueue_function(create_enqueue.queue, columns) f;
    if _enqueue.body is not null then
        execute format('create or replace function pgcombine.%I(%s) returns bigint language plpgsql as %L',
            queue || '_enqueue', _enqueue.parameters, _enqueue.body);
        execute format('comment on routine pgcombine.%I is '
            '''Appends updates, an array for each column; returns their number.''', queue || '_enqueue');
    end if;
end
$$;
