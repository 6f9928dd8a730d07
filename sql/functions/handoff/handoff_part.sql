-- pgcombine.handoff_part(payload, numbers) → text
-- The payload with only the updates of these numbers, from 1, in their order.
create or replace function pgcombine.handoff_part(payload text, numbers integer[])
returns text
language sql immutable
as $$
    select array_agg(part.c::text order by part.number)::text
    from (
        select p.number, (select array_agg((p.c::text[])[n] order by n) from unnest(numbers) n) as c
        from unnest(payload::text[]) with ordinality p (c, number)
    ) part
$$;
