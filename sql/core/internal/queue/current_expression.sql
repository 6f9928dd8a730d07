-- pgcombine_internal.current_expression(column) → text
-- Returns the expression that combines a value column in <queue>_current. It is the expression of passes (see
-- fold_expression), except for the combiners sum and count: a sum beyond its type's range is null with a warning, since
-- an error would fail the query for all other keys, too.
-- The expression compares sums of integers and of numeric(p, s) with the type's range, and calls current_sum only to
-- warn. Sums of other types come from current_sum, which catches errors. A call is slow, so the expression makes none
-- for a key that has only a value or a single update.
create or replace function pgcombine_internal.current_expression("column" pgcombine.queue_column)
returns text
language plpgsql stable
as $$
declare
    _column constant pgcombine.queue_column := "column";
    _numeric constant text[] := regexp_match(_column.type, E'^numeric\\((\\d+),(-?\\d+)\\)$');
    _range constant text := case _column.type
        when 'smallint' then '{sum} operator(pg_catalog.>=) -32768 and {sum} operator(pg_catalog.<=) 32767'
        when 'integer' then '{sum} operator(pg_catalog.>=) -2147483648 and {sum} operator(pg_catalog.<=) 2147483647'
        when 'bigint' then '{sum} operator(pg_catalog.>=) -9223372036854775808 and {sum} operator(pg_catalog.<=) '
            '9223372036854775807'
        else case when _numeric is not null
            then format('pg_catalog.abs(pg_catalog.round({sum}, %s)) operator(pg_catalog.<) 1e%s or {sum} '
            'operator(pg_catalog.=) ''NaN''',
            _numeric[2], _numeric[1]::integer - _numeric[2]::integer) end end;
begin
    if _column.combiner not in ('sum', 'count') then
        return pgcombine_internal.fold_expression(_column);
    end if;
    return pgcombine_internal.fill(case when _range is not null
            then 'case when {range} then {sum}::{type} when {sum} is not null
                then pgcombine_internal.current_sum({queue}, {literal}, row({keys}), null::{type}[], {error}) end'
            else '(case when pg_catalog.count({name}) operator(pg_catalog.<=) 1 then {parts}[1]
                else pgcombine_internal.current_sum({queue}, {literal}, row({keys}), {parts}) end)::{type}' end,
        jsonb_build_object('range', replace(_range, '{sum}', format('pg_catalog.sum(%I)', _column.name)),
            'sum', format('pg_catalog.sum(%I)', _column.name),
            'parts', format('(pg_catalog.array_agg(%1$I) filter (where %1$I is not null))', _column.name),
            'name', quote_ident(_column.name),
            'literal', quote_literal(_column.name), 'queue', quote_literal(_column.queue), 'type', _column.type,
            'error', quote_literal(_column.type || ' out of range'),
            'keys', pgcombine_internal.column_list(_column.queue, 'key')));
end
$$;
