-- pgcombine_internal.takes_bytes(queue, bytes, source) → boolean
-- Returns whether the values that a pass over some updates collects in memory take more than a number of bytes before
-- compression. These are the values of combiners that fold all of a key's updates at once, and of a user's own.
-- It ends at the row that exceeds the number, since it reads values from where large ones are stored.
--   source  a from item with the queue's columns
create or replace function pgcombine_internal.takes_bytes(queue text, bytes bigint, source text)
returns boolean
language plpgsql stable
as $$
declare
    _sizes constant text := (
        select string_agg(format('coalesce(pg_catalog.pg_column_size(array[%I]), 0)', c.name), ' + ' order by c.position)
        from pgcombine.queue_column c join pgcombine.combiner k using (combiner)
        where c.queue = takes_bytes.queue
          and case when k.combiner in ('jsonb_merge', 'array_union') or k.function is not null then pgcombine_internal.unbounded(c) end);
    _size bigint;
    _sum bigint := 0;
begin
    if _sizes is not null then
        for _size in execute format('select %s from %s', _sizes, source) loop
            _sum := _sum + _size;
            if _sum > takes_bytes.bytes then
                return true;
            end if;
        end loop;
    end if;
    return false;
end
$$;
