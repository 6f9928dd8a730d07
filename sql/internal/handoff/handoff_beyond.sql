-- pgcombine_internal.handoff_beyond(queue, payload, slots) → text
-- Returns the payload without the updates of keys in some slots (handoff_slot_sql); null: none are left.
create or replace function pgcombine_internal.handoff_beyond(queue text, payload text, slots integer[])
returns text
language plpgsql stable
as $$
declare
    _numbers integer[];
begin
    execute format('select array_agg(s.number order by s.number) from (%s) s where not s.slot = any ($2)',
        pgcombine_internal.handoff_slot_sql(handoff_beyond.queue)) into _numbers using handoff_beyond.payload, slots;
    return case when cardinality(_numbers) > 0 then pgcombine_internal.handoff_part(handoff_beyond.payload, _numbers) end;
end
$$;
