-- pgcombine.plain_rows(queue) → text
-- The condition that holds for plain rows of a queue's updates, with its and; empty where there are no others. Who
-- takes some keys asks for it also after unpack: under read committed a packed row may have come since.
-- Without statistics the planner takes this for most of the rows, and a plain "is null" for hardly any.
create or replace function pgcombine.plain_rows(queue text)
returns text
language sql stable
as $$
    select case when pgcombine.packed_updates(plain_rows.queue, '') is null then '' else 'num_nulls(pgcombine_packed) <> 0 and ' end
$$;
