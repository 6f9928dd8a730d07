-- pgcombine_internal.follow_drop() event trigger, after a drop and after alter table … drop
-- Refuses to drop a part of a rollup's source: the rollup would keep the part's rows, which can't be read any more.
-- Refuses to drop what a rollup's expressions use, such as a column, function or type. The source itself can be
-- dropped.
-- Runs with its owner's rights, to see the rollups.
-- Errors: PC003 a part of a source, or something that a rollup's expressions use, was dropped.
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
    -- pgcombine.rollup is missing if it is dropped with its schema
    if to_regclass('pgcombine.rollup') is null then
        return;
    end if;
    perform pgcombine_internal.caller();
    select case o.object_type when 'view'
               then format('rollup "%s" of %s reads what was dropped', r.queue, r.source)
               else format('%s is a part of %s, the source of rollup "%s"', o.object_identity, r.source, r.queue) end,
           case o.object_type when 'view'
               then format('drop the rollup first: select pgcombine.drop_rollup(%L)', r.queue)
               else 'detach it first, which takes its rows back: alter table … detach partition …, or no inherit' end
    into _problem, _hint
    from pg_event_trigger_dropped_objects() o
    join pgcombine.rollup r on o.object_type = 'view' and (o.schema_name, o.object_name) in (
            ('pgcombine', r.queue || '_source'), ('pgcombine_internal', r.queue || '_expressions'))
        or o.object_type = 'table' and exists (
            select from pgcombine.rollup_part p where p.queue = r.queue and p.part = o.objid)
    join pg_class c on c.oid = r.source
    limit 1;
    perform pgcombine_internal.require(not found, 'PC003', _problem, _hint);
end
$$;
revoke execute on function pgcombine_internal.follow_drop() from public;
