-- pgcombine_internal.enqueue_function(queue, columns) → (parameters, body)
-- Returns the parameters and the body of <queue>_enqueue, which appends updates in the caller's transaction and returns
-- their number. <queue>_enqueue takes an array for each column, keys first. If the array of a value column is missing
-- or null, all updates get the column's default. parameters and body are null if a column is an array or a composite,
-- has a type without arrays, or is named like a parameter ($1).
--   columns  see columns_of
-- Errors: of <queue>_enqueue: PC004 the arrays are of different lengths.
create or replace function pgcombine_internal.enqueue_function(queue text, columns jsonb, out parameters text,
    out body text)
language plpgsql stable
as $$
declare
    _parts jsonb;
begin
    select string_agg(format('%I %s[]', c.name, c.type) || case c.role when 'value' then ' default null' else '' end,
               ', ' order by c.n),
           jsonb_build_object(
               'queue', enqueue_function.queue, 'updates', format('pgcombine.%I', enqueue_function.queue || '_updates'),
               'columns', string_agg(quote_ident(c.name), ', ' order by c.n),
               'arrays', string_agg(format('unnest($%s)', c.n), ', ' order by c.n),
               'counts', string_agg(format(case c.role when 'key' then 'coalesce(cardinality($%s), 0)'
                   else 'cardinality($%s)' end, c.n), ', ' order by c.n),
               'defaults', string_agg(format('
    if $%1$s is null then
        $%1$s := array_fill(%2$L::%3$s, array[_count]);
    end if;', c.n, c.initial, c.type), '' order by c.n) filter (where c.role = 'value'))
    into parameters, _parts
    from rows from (jsonb_to_recordset(columns) as (name text, role text, type text, initial text))
        with ordinality c (name, role, type, initial, n)
    join pg_type t on t.oid = c.type::regtype
    join pg_type b on b.oid = pgcombine_internal.base_type(t.oid)
    having bool_and(t.typarray <> 0 and b.typcategory not in ('A', 'C') and c.name !~ E'^\\$[0-9]+$');
    if _parts is null then
        return;
    end if;
    body := pgcombine_internal.fill($body$
declare
    _count constant integer := coalesce(cardinality($1), 0);
begin
    if _count <> any (array[{counts}]) then
        raise exception 'the columns of the updates for queue "{queue}" are of different lengths: %', array[{counts}]
            using errcode = 'PC004', hint = 'give an array of equal length for each column';
    end if;{defaults}
    insert into {updates} ({columns}) select {arrays};
    return _count;
end
$body$, _parts);
end
$$;
