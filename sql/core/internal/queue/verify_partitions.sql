-- pgcombine_internal.verify_partitions(queue, parent) → problems
-- The part of verify for the partitions by hash: finds a wrong number of partitions, missing ones, ones with other
-- bounds, and rows in a partition to which their keys don't belong.
--   parent  the table <queue>_values, or a segment of <queue>_updates
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.verify_partitions(queue text, parent regclass)
returns setof text
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
    -- the partitions' names: the text before the number, and the text after it
    _name constant text[] := (
        select array[regexp_replace(c.relname, E'_s\\d+$', ''), substring(c.relname from E'_updates(_s\\d+)$')]
        from pg_class c where c.oid = parent);
    _partition record;
begin
    return query
    select format('%s has %s partitions instead of %s', parent, count(*), _queue.partitions)
    from pg_inherits i where i.inhparent = parent having count(*) <> _queue.partitions;
    for _partition in
        select n as number, c.name, pg_get_expr(i.relpartbound, i.oid) as bound,
               format('FOR VALUES WITH (modulus %s, remainder %s)', _queue.partitions, n) as wanted
        from generate_series(0, _queue.partitions - 1) n
        cross join format('pgcombine.%I', _name[1] || '_b' || to_char(n, 'FM0000') || coalesce(_name[2], '')) c (name)
        left join pg_class i on i.oid = (
            select h.inhrelid from pg_inherits h where h.inhrelid = to_regclass(c.name) and h.inhparent = parent)
    loop
        if _partition.bound is distinct from _partition.wanted then
            return next format('partition %s of %s is %s',
                _partition.number, parent, coalesce(_partition.bound, 'missing'));
        else
            return query execute format(
                'select format(''%%s holds %%s rows of keys that belong elsewhere'', $1, count(*))
                 from %s where not satisfies_hash_partition($2, %s, %s, %s) having count(*) > 0',
                _partition.name, _queue.partitions, _partition.number,
                pgcombine_internal.column_list(_queue.queue, 'key'))
            using _partition.name::regclass, parent::oid;
        end if;
    end loop;
end
$$;
