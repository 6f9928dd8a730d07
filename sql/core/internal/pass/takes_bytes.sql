-- pgcombine_internal.takes_bytes(queue, bytes, source) → boolean
-- Returns whether the values that a pass collects in memory take more than a number of bytes. A column counts only
-- if its type doesn't bound its values (see unbounded) and its combiner is user-defined, jsonb_merge or array_union:
-- these combiners may collect all of a key's updates. The scan ends at the row that exceeds the number.
--   queue   the queue's row
--   source  a from item with the updates and the queue's columns
create or replace function pgcombine_internal.takes_bytes(queue pgcombine.queue, bytes bigint, source text)
returns boolean
language plpgsql stable
as $$
declare
    _size bigint;
    _sum bigint := 0;
begin
    if ($1).pass ->> 'bytes' is not null then
        for _size in execute format('select %s from %s', ($1).pass ->> 'bytes', source) loop
            _sum := _sum + _size;
            if _sum > takes_bytes.bytes then
                return true;
            end if;
        end loop;
    end if;
    return false;
end
$$;
