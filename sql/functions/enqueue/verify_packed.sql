-- pgcombine.verify_packed(queue) → problems
-- The part of verify that finds rows whose arrays can't be updates.
create or replace function pgcombine.verify_packed(queue text)
returns setof text
language plpgsql stable
as $$
declare
    _updates constant text := format('pgcombine.%I', verify_packed.queue || '_updates');
    _arrays text;
    _unfit constant record := pgcombine.unfit_packed(verify_packed.queue);
    _count bigint;
begin
    if pgcombine.packed_updates(verify_packed.queue, _updates) is null then
        return;
    end if;
    select string_agg(format('pgcombine_%s', c.position), ', ' order by c.position) into _arrays
    from pgcombine.queue_column c where c.queue = verify_packed.queue;
    execute format('select count(*) from %s where pgcombine_packed is null and num_nonnulls(%s) > 0', _updates, _arrays) into _count;
    if _count > 0 then
        return next format('%s rows have arrays of updates, but aren''t marked as packed: those are never combined', _count);
    end if;
    execute format('select count(*) from %s where pgcombine_packed is not null and %s', _updates, _unfit.lengths) into _count;
    if _count > 0 then
        return next format('%s packed rows whose arrays are of different lengths', _count);
    end if;
    execute format('select count(*) from %s where pgcombine_packed is not null and (%s)', _updates, _unfit.keys) into _count;
    if _count > 0 then
        return next format('%s packed rows hold keys that no pass can take: null, or longer than 2600 bytes', _count);
    end if;
end
$$;
