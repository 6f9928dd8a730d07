-- pgcombine.handoff_part(payload, numbers) → text
-- The payload with only the updates of these numbers, from 1, in their order. In PL/pgSQL, whose variable is an array
-- of known places: elsewhere each element is searched for from the beginning.
create or replace function pgcombine.handoff_part(payload text, numbers integer[])
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
