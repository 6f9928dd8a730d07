-- pgcombine_internal.parse_column(role, definition) → pgcombine.queue_column
-- Returns the parts of a column's definition: 'word text' (role key), 'n bigint sum' (role value). Those that can't be
-- read, and the queue and the position, are null.
--   definition  the name (perhaps quoted), the type as in create table, perhaps a collation (word text collate "C").
--               For values the combiner comes last: a built-in one, or the perhaps qualified name of a function or an
--               aggregate; last(at) and first(at) name the column that orders them
create or replace function pgcombine_internal.parse_column(role text, definition text)
returns pgcombine.queue_column
language plpgsql stable
as $$
declare
    _identifier constant text := '(?:"(?:[^"]|"")+"|[[:alpha:]_][[:alnum:]_$]*)';
    _qualified constant text := format('%s(?:\.%s)*', _identifier, _identifier);
    _match text[] := regexp_match(btrim(definition), format('^(%s)\s+(.+)$', _identifier));
    _column pgcombine.queue_column;
begin
    _column.role := parse_column.role;
    _column.name := pgcombine_internal.identifier(_match[1]);
    _column.type := _match[2];
    if role = 'value' then
        _match := regexp_match(_column.type, format('^(.*\S)\s+(%s)(?:\s*\(\s*(%s)\s*\))?$', _qualified, _identifier));
        _column.type := _match[1];
        _column.combiner := _match[2];
        _column.ordered_by := pgcombine_internal.identifier(_match[3]);
    end if;
    _match := regexp_match(_column.type, format('^(.*\S)\s+collate\s+(%s)$', _qualified), 'i');
    if _match is not null then
        _column.type := _match[1];
        _column.collation := _match[2];
    end if;
    return _column;
end
$$;
