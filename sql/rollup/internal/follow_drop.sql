-- pgcombine_internal.follow_drop() event trigger, after tables were dropped
-- Refuses to drop a part of a rollup's source: the rollup would keep the part's rows, which can't be read any more.
-- Runs with its owner's rights, to see the rollups.
-- Errors: PC003 a part of a source was dropped.
create or replace function pgcombine_internal.follow_drop()
returns event_trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem text;
    _hint text;
begin
    perform pgcombine_internal.caller();
    select format('%s is a part of %s, the source of rollup "%s"', o.object_identity, r.source, r.queue),
           'detach it first, which takes its rows back: alter table … detach partition …, or no inherit'
    into _problem, _hint
    from pg_event_trigger_dropped_objects() o
    join pg_event_trigger_dropped_objects() t on t.object_type = 'trigger'
        and t.address_names[1:2] = o.address_names[1:2]
    join pgcombine.rollup r on t.address_names[3] = 'pgcombine_' || r.queue || '_truncate'
    join pg_class c on c.oid = r.source
    where o.object_type = 'table' and exists (select from pg_proc p where p.proname = r.queue || '_rollup'
        and p.pronamespace = 'pgcombine_internal'::regnamespace)
    limit 1;
    perform pgcombine_internal.require(not found, 'PC003', _problem, _hint);
end
$$;
revoke execute on function pgcombine_internal.follow_drop() from public;
