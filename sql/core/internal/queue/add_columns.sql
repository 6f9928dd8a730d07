-- pgcombine_internal.add_columns(queue, key, value)
-- Parses and records the columns of a queue that is being created (see add_column).
-- Tables written: those of add_column.
-- Errors: PC003 there is no key column or no value column, or a definition is wrong.
create or replace function pgcombine_internal.add_columns(queue text, key text[], value text[])
returns void
language plpgsql
as $$
declare
    _column record;
begin
    perform pgcombine_internal.require(cardinality(key) > 0 and cardinality(value) > 0, 'PC003',
        format('queue "%s" needs at least one key column and one value column', queue),
        'key => array[''word text''], value => array[''n bigint sum'']');
    for _column in
        select case when d.place <= cardinality(key) then 'key' else 'value' end as role, d.definition,
            d.place - 1 as position
        from unnest(key || value) with ordinality d (definition, place)
    loop
        perform pgcombine_internal.add_column(queue, _column.role, _column.definition, _column.position::integer);
    end loop;
    perform pgcombine_internal.require(o.combiner = w.wanted, 'PC003',
        format('%s(%s) of column "%s" needs a value column "%s" with combiner %s, which %s', c.combiner,
            c.ordered_by, c.name,
            c.ordered_by, w.wanted, coalesce('has combiner ' || o.combiner, 'isn''t there')),
        format('for example ''%s timestamptz %s''', c.ordered_by, w.wanted))
    from pgcombine.queue_column c
    cross join lateral (select case c.combiner when 'last' then 'max' else 'min' end) w (wanted)
    left join pgcombine.queue_column o on o.queue = c.queue and o.name = c.ordered_by
    where c.queue = add_columns.queue and c.ordered_by is not null;
end
$$;
