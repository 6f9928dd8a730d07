-- pgcombine_internal.before_drain(queue)
-- Runs the components' queries for the event drain, which enqueue what is due, each until it doesn't return true (see
-- the table hook).
create or replace function pgcombine_internal.before_drain(queue text)
returns void
language plpgsql
as $$
declare
    _query text;
    _more boolean;
begin
    for _query in select h.query from pgcombine.hook h where h.event = 'drain' loop
        loop
            execute _query into _more using queue;
            exit when _more is not true;
        end loop;
    end loop;
end
$$;
