-- pgcombine_internal.rollup_outdated(rollup) → boolean
-- Returns whether generate_rollup would change a rollup's objects or rights: something that its expressions name was
-- renamed, its source has a new owner, or that owner lacks the right to enqueue or has altered a function. False if the
-- source or its expressions are lost.
create or replace function pgcombine_internal.rollup_outdated(rollup pgcombine.rollup)
returns boolean
language plpgsql stable -- not sql: its planner would call rollup_trigger, which fails if a type was renamed
set search_path = pg_catalog, pg_temp
set quote_all_identifiers = off
as $$
begin
    if rollup.definition is null or not exists (select from pg_class c where c.oid = rollup.source) then
        return false;
    elsif exists (
        select from pgcombine.queue_column c
        join pg_attribute a on a.attname = c.name
            and a.attrelid = to_regclass(format('pgcombine.%I', rollup.queue || '_values'))
        where c.queue = rollup.queue and c.type <> pgcombine_internal.type_name(a.atttypid, a.atttypmod))
    then
        return true;
    end if;
    return exists (
        select from pg_class c
        cross join pgcombine_internal.rollup_functions(rollup) f
        left join pg_proc p on p.pronamespace = 'pgcombine_internal'::regnamespace and p.proname = f.name
        join pgcombine.queue q on q.queue = rollup.queue
        where c.oid = rollup.source and ((c.relowner, f.body, true) is distinct from (p.proowner, p.prosrc, p.prosecdef)
            or f.options <> concat_ws(' ', case p.provolatile when 's' then 'stable' when 'i' then 'immutable' end,
                case when p.proisstrict then 'strict' end, (
                select string_agg('set ' || replace(s.setting, '=', ' = '), ' ' order by s.place)
                from unnest(p.proconfig) with ordinality s (setting, place)))
            or not has_any_column_privilege(c.relowner, format('pgcombine.%I', q.queue || '_updates'), 'insert')
            or q.computed <> pgcombine_internal.rollup_pass(rollup)));
end
$$;
