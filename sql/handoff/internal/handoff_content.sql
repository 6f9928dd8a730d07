-- pgcombine_internal.handoff_content(queue, payload) → jsonb
-- Returns the updates of a payload as a JSON array of objects, for display. The values are texts, as in the payload.
create or replace function pgcombine_internal.handoff_content(queue text, payload text)
returns jsonb
language sql stable
as $$
    select jsonb_agg(u.content order by u.number)
    from (
        select v.number, jsonb_object_agg(c.name, v.value) as content
        from (select o.name, row_number() over (order by o.position) as place
              from pgcombine.queue_column o where o.queue = handoff_content.queue) c
        join unnest(handoff_content.payload::text[]) with ordinality p (c, place) using (place)
        cross join lateral unnest(p.c::text[]) with ordinality v (value, number)
        group by v.number
    ) u
$$;
