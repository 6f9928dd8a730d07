-- pgcombine.verify_packed(queue) → problems
-- The part of verify that finds rows whose arrays can't be updates.
create or replace function pgcombine.verify_packed(queue text)
returns setof text
language plpgsql stable
as $$
declare
    _updates constant text := format('pgcombine.%I', verify_packed.queue || '_updates');
    _arrays text;
    _lengths text;
    _keys text;
    _key_arrays text;
    _unfit text;
    _count bigint;
begin
    if pgcombine.packed_updates(verify_packed.queue, _updates) is null then
        return;
    end if;
    select string_agg(format('pgcombine_%s', c.position), ', ' order by c.position),
           string_agg(format('cardinality(pgcombine_%s)', c.position), ', ' order by c.position),
           string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key'),
           string_agg(format('u.pgcombine_%s', c.position), ', ' order by c.position) filter (where c.role = 'key'),
           concat_ws(' or ', string_agg(format('m.%I is null', c.name), ' or ' order by c.position) filter (where c.role = 'key'),
                     pgcombine.key_size(verify_packed.queue, 'm.') || ' > 2600')
    into _arrays, _lengths, _keys, _key_arrays, _unfit
    from pgcombine.queue_column c where c.queue = verify_packed.queue;
    execute format('select count(*) from %s where pgcombine_packed is null and num_nonnulls(%s) > 0', _updates, _arrays) into _count;
    if _count > 0 then
        return next format('%s rows have arrays of updates, but aren''t marked as packed: those are never combined', _count);
    end if;
    execute format('select count(*) from %s where pgcombine_packed is not null
                    and (cardinality(pgcombine_0) > 0 and cardinality(pgcombine_0) = all (array[%s])) is not true', _updates, _lengths) into _count;
    if _count > 0 then
        return next format('%s packed rows whose arrays are of different lengths', _count);
    end if;
    execute format('select count(*) from %s u where pgcombine_packed is not null and exists (select from unnest(%s) as m (%s) where %s)',
        _updates, _key_arrays, _keys, _unfit) into _count;
    if _count > 0 then
        return next format('%s packed rows hold keys that no pass can take: null, or longer than 2600 bytes', _count);
    end if;
end
$$;
