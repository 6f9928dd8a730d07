-- pgcombine_internal.handoff_fitting(queue, token, payload, details, placed, replicas, came) → text
-- For a write with details (see handoff_apply), returns the updates that this server appends. Null: there are none.
--   details                 see handoff_apply
--   placed, replicas, came  see handoff_local_updates
-- Tables written: those of handoff_refuse and handoff_accepts.
-- Errors: those of handoff_refuse, handoff_accepts and handoff_local_updates.
create or replace function pgcombine_internal.handoff_fitting(queue text, token uuid, payload text, details jsonb,
    placed text[], replicas integer, came integer[])
returns text
language plpgsql
as $$
declare
    _refused constant integer[] := array(select r.number
        from jsonb_to_recordset(details -> 'refused') r (number integer));
begin
    if details ? 'retried' and not pgcombine_internal.handoff_accepts(queue,
            (details ->> 'retried')::uuid, (details ->> 'number')::integer) then
        return null; -- this server has the update by now
    end if;
    if _refused <> '{}' then
        perform pgcombine_internal.handoff_refuse(handoff_fitting.queue, handoff_fitting.token, array_agg(u.number),
            array_agg(u.part), array_agg(u.sqlstate), array_agg(u.error))
        from (select r.*, pgcombine_internal.handoff_subset(payload, array[r.number]) as part
              from jsonb_to_recordset(details -> 'refused') r (number integer, sqlstate text, error text)) u
        where pgcombine_internal.handoff_local_updates(handoff_fitting.queue, u.part, placed, replicas, came)
              is not null;
    end if;
    return (
        select pgcombine_internal.handoff_local_updates(handoff_fitting.queue,
            pgcombine_internal.handoff_subset(payload, array_agg(n)),
            placed, replicas, came)
        from generate_series(1, cardinality((payload::text[])[1]::text[])) n where n <> all (_refused)
        having count(*) > 0);
end
$$;
