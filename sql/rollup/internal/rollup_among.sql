-- pgcombine_internal.rollup_among(rollup, among [, columns]) → text
-- Returns the condition that a row's key is among the keys of a from item. It compares keys by the operators of their
-- types' default operator classes, wherever these are (in would look them up on the search path).
--   among    the from item; it has the key columns. Null: there is no condition
--   columns  whether the row has the key columns, too. Otherwise it is a row of the source
create or replace function pgcombine_internal.rollup_among(rollup pgcombine.rollup, among text,
    columns boolean default false)
returns text
language sql stable
as $$
    -- in the inner query the columns have other names, since an expression may name a column of the source
    select case when among is not null then format(
        'exists (select from (select %s from %s) as pgcombine_among where %s)',
        string_agg(format('%I as pgcombine_key_%s', k.value ->> 'name', k.place), ', ' order by k.place), among,
        string_agg(format('%s %s pgcombine_key_%s', case when columns then quote_ident(k.value ->> 'name')
            else format('(%s)', k.value ->> 'expression') end,
            (pgcombine_internal.type_operator((k.value ->> 'type')::regtype, 3)).name, k.place), ' and '
            order by k.place)) end
    from jsonb_array_elements((rollup).definition -> 'keys') with ordinality k (value, place)
$$;
