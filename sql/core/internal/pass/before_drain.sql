-- pgcombine_internal.before_drain(queue)
-- Runs the components' queries for the event drain, which enqueue what is due (see the table hook).
create or replace function pgcombine_internal.before_drain(queue text)
returns void
language plpgsql
as $$
declare
    _query text;
begin
    for _query in select h.query from pgcombine.hook h where h.event = 'drain' loop
        execute _query using queue;
    end loop;
end
$$;
