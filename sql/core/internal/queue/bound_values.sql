-- pgcombine_internal.bound_values(queue)
-- Bounds the values of an update to a megabyte, and combined values to 16, unless that has been done. A pass has the
-- updates and values of a key in memory, several times over. Rows that are there aren't checked.
create or replace function pgcombine_internal.bound_values(queue text)
returns void
language plpgsql
as $$
declare
    _bound record;
    _levels constant text := case when exists (
        select from pgcombine.queue_column c where c.queue = bound_values.queue
            and c.combiner = 'jsonb_merge') then '_and_64_levels' else '' end;
begin
    for _bound in
        select format('pgcombine.%I', bound_values.queue || '_updates') as relation,
            'update_has_at_most_1_megabyte' as name,
               pgcombine_internal.value_bounds(bound_values.queue, 1048576) as condition
        union all
        select format('pgcombine.%I', bound_values.queue || '_values'), 'value_has_at_most_16_megabytes',
               pgcombine_internal.value_bounds(bound_values.queue, 16777216)
    loop
        if _bound.condition is not null and not exists (
            select from pg_constraint k where k.conrelid = to_regclass(_bound.relation)
                and k.conname = _bound.name || _levels) then
            execute format('alter table %s add constraint %I check (%s) not valid', _bound.relation,
                _bound.name || _levels, _bound.condition);
        end if;
    end loop;
end
$$;
