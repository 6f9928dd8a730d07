-- pgcombine.not_quarantined(queue [, condition]) → text
-- The where clause of a pass that takes the updates under the condition (null: all), none of quarantined keys: those
-- that were committed after divert has moved its own would be reported half-combined. Empty: no restriction; no pass
-- pays for an empty quarantine.
create or replace function pgcombine.not_quarantined(queue text, condition text default null)
returns text
language sql stable
as $$
    select coalesce('where ' || nullif(concat_ws(' and ', nullif(not_quarantined.condition, ''),
        case when exists (select from pgcombine.quarantined_key k where k.queue = not_quarantined.queue)
             then pgcombine.not_held(not_quarantined.queue) end), ''), '')
$$;
