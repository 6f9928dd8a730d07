-- pgcombine_internal.handoff_without(payload, numbers) → text
-- Returns the payload without the updates of some numbers (from 1); null: none are left.
create or replace function pgcombine_internal.handoff_without(payload text, numbers integer[])
returns text
language sql immutable
as $$
    select case when cardinality(rest.numbers) > 0 then pgcombine_internal.handoff_part(payload, rest.numbers) end
    from (select array(select n from generate_series(1, cardinality((payload::text[])[1]::text[])) n where not n = any (numbers)) as numbers) rest
$$;
