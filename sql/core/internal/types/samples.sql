-- pgcombine_internal.samples(type) → text[]
-- Returns up to six different values of a type as text, to try a combiner on: the first ones of a fixed list that the
-- type accepts, labels of an enum, or arrays of samples of the element type.
--   type  as in a column definition, with modifiers
create or replace function pgcombine_internal.samples(type text)
returns text[]
language plpgsql stable
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _type pg_type;
    _choice text[];
    _element text[];
    _literal text;
    _value text;
    _samples text[] := '{}';
begin
    select t.* into strict _type from pg_type t where t.oid = pgcombine_internal.base_type(type::regtype);
    if _type.typcategory = 'A' then
        _element := pgcombine_internal.samples(pgcombine_internal.type_name(_type.typelem, -1));
        _choice := array['{}', array[_element[1]]::text, array[_element[2], _element[1]]::text,
                         array[_element[3], _element[3]]::text, array[_element[2], _element[4], null]::text];
    elsif _type.typcategory = 'E' then
        _choice := array(select e.enumlabel from pg_enum e where e.enumtypid = _type.oid order by e.enumsortorder);
    else
        _choice := case _type.typcategory
            when 'N' then array['0', '1', '-3', '7', '2', '0.5', '-0.25']
            when 'B' then array['false', 'true']
            when 'S' then array['', 'a', 'b', 'ab', 'B', 'é']
            when 'V' then array['0', '1', '101', '0110', '11111111']
            when 'T' then array['0', '1 day', '-3 hours', '1 month', '2 days 1 second']
            when 'D' then array['2000-01-01', '1999-12-31 23:59:59', '2024-02-29 12:00:00.5', '2038-01-19', '00:00:00',
                '12:00', '23:59:59.5']
            else array['{}', '{"a": 1}', '{"a": 2, "b": [1]}', '[1, 2]', '"x"', '0',
                       '[1,3)', '[2,5)', '[7,9)', 'empty', '[2000-01-01,2000-02-01)', '[2000-01-15,2001-01-01)',
                       '{[1,3)}', '{[2,5),[7,9)}', '{[2000-01-01,2000-02-01)}',
                       '00000000-0000-0000-0000-000000000000', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
                       'ffffffff-ffff-4fff-bfff-ffffffffffff',
                       '10.0.0.1', '10.0.0.2', '192.168.0.0/16', '08:00:2b:01:02:03', '(0,0)', '(1,2)', '(2,1)',
                       '(1,2),(0,0)', '((0,0),1)',
                       '(,)', '(a,b)', '(0)', '(1)', '(7)', '(1,2,3)', '(2,1,0)',
                       '1', '7', '-3', 'a', 'b', 'ab', '\x', '\x00ff', '<a/>', '<b>c</b>', '0/0', '0/16B3748'] end;
    end if;
    foreach _literal in array _choice loop
        exit when cardinality(_samples) = 6;
        begin
            execute format('select (%L::%s)::text', _literal, type) into _value;
            if _value <> all (_samples) then
                _samples := _samples || _value;
            end if;
        exception when others then
            null; -- the type doesn't accept it
        end;
    end loop;
    return _samples;
end
$$;
