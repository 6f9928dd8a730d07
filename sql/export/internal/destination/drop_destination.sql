-- pgcombine_internal.drop_destination(kind, name)
-- Deletes a destination; an unknown one is no error.
-- Tables written: pgcombine.destination_state.
create or replace function pgcombine_internal.drop_destination(kind text, name text)
returns void
language sql
as $$
    delete from pgcombine.destination_state d where d.kind = drop_destination.kind and d.name = drop_destination.name
$$;
