-- pgcombine_internal.fill(template, parts) → text
-- Returns a template with each {name} replaced by the part of this name. A part that is null counts as an empty text.
-- If no part has the name, {name} stays. Parts may contain braces.
create or replace function pgcombine_internal.fill(template text, parts jsonb)
returns text
language plpgsql immutable
as $$
declare
    _pieces constant text[] := string_to_array(template, '{');
    _filled text := _pieces[1];
    _piece text;
    _name text;
begin
    foreach _piece in array _pieces[2:] loop
        _name := split_part(_piece, '}', 1);
        if parts ? _name and length(_name) < length(_piece) then
            _filled := _filled || coalesce(parts ->> _name, '') || substr(_piece, length(_name) + 2);
        else
            _filled := _filled || '{' || _piece;
        end if;
    end loop;
    return _filled;
end
$$;
