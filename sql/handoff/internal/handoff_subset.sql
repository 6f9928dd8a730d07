-- pgcombine_internal.handoff_subset(payload, numbers) → text
-- Returns the payload with only the updates of these numbers (from 1), in ascending order.
-- The function is in PL/pgSQL, which finds an element of a long array faster than SQL.
create or replace function pgcombine_internal.handoff_subset(payload text, numbers integer[])
returns text
language plpgsql immutable
as $$
declare
    _text text;
    _column text[];
    _parts text[] := '{}';
begin
    foreach _text in array payload::text[] loop
        _column := _text::text[];
        _parts := array_append(_parts, array(select _column[n] from unnest(numbers) n order by n)::text);
    end loop;
    return _parts::text;
end
$$;
