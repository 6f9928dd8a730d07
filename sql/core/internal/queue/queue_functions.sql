-- pgcombine_internal.queue_functions(queue, columns) → (name, parameters, result, language, volatility, body, comment)
-- Returns the functions of a queue or of a front, a row for each:
--   <queue>_enqueue   see enqueue_function, which says what queues lack it
--   <queue>_get       the row of a key, for lateral joins. PostgreSQL inlines the function, which has no settings for
--                     this reason. Offset 0 then keeps the key a parameter of the view's plan: a join clause wouldn't
--                     reach into the grouped query of the view
--   <queue>_get_many  the rows of many keys, an array for each key column. It plans its query with the keys as
--                     constants, so that they choose the buckets and are hashed. A queue lacks the function if a key
--                     column is an array, since there are no arrays of arrays
-- The last two read, with their caller's rights, the view that shows the queue (see the event view of the table hook).
--   columns  see columns_of
create or replace function pgcombine_internal.queue_functions(queue text, columns jsonb)
returns table (name text, parameters text, result text, language name, volatility text, body text,
    comment text)
language plpgsql stable
as $$
declare
    _view text := queue || '_current';
    _query text;
    _other text;
begin
    for _query in select h.query from pgcombine.hook h where h.event = 'view' loop
        execute _query into _other using queue;
        _view := coalesce(_other, _view);
    end loop;
    if to_regclass(format('pgcombine.%I', _view)) is null then -- it was dropped together with a table that it reads
        _view := queue || '_current';
    end if;
    _view := format('pgcombine.%I', _view);
    return query
    select queue || '_enqueue', f.parameters, 'bigint', 'plpgsql'::name, 'volatile', f.body,
        'Appends updates, an array for each column; returns their number.'
    from pgcombine_internal.enqueue_function(queue, columns) f where f.body is not null;
    return query
    with k as (
        select string_agg(c.parameter || c.type, ', ' order by c.n) as parameters,
               string_agg(c.parameter || c.type || '[]', ', ' order by c.n) as arrays,
               string_agg(format('c.%s %s %s%s', c.name, c.equals, c.given, c.collation), ' and ' order by c.n) as same,
               string_agg(format('c.%s %s any (%s)', c.name, c.equals, c.given), ' and ' order by c.n)
                   || case when count(*) > 1 then format(
                       ' and exists (select from (select %s) as k (%s) where %s)',
                       string_agg(format('pg_catalog.unnest(%s)', c.given), ', ' order by c.n),
                       string_agg('k' || c.n, ', ' order by c.n),
                       string_agg(format('c.%s %s k.k%s', c.name, c.equals, c.n), ' and ' order by c.n))
                   else '' end as among,
               string_agg(c.given, ', ' order by c.n) as given, bool_or(c.is_array) as has_array
        from (
            select n.n, quote_ident(n.name) as name, '$' || n.n as given, n.type, t.typcategory = 'A' as is_array,
                   case when n.name ~ E'^\\$[0-9]+$' then '' else quote_ident(n.name) || ' ' end as parameter,
                   (pgcombine_internal.type_operator(t.oid, 3)).name as equals,
                   ' collate ' || l.collnamespace::regnamespace || '.' || quote_ident(l.collname) as collation
            from rows from (jsonb_to_recordset(columns) as (name text, role text, type text)) with ordinality
                n (name, role, type, n)
            join pg_type t on t.oid = n.type::regtype
            left join pg_attribute a on a.attrelid = to_regclass(_view) and a.attname = n.name
            left join pg_collation l on l.oid = a.attcollation
            where n.role = 'key') c)
    select queue || '_get', k.parameters, 'setof ' || _view, 'sql'::name, 'stable',
        format('select c.* from %s c where %s offset 0', _view, k.same),
        'Returns the current row of a key, or none: for left join lateral.'
    from k
    union all
    select queue || '_get_many', k.arrays, 'setof ' || _view, 'plpgsql', 'stable', format(
        E'\nbegin\n    return query execute %L\n    using %s;\nend\n',
        format('select c.* from %s c where %s', _view, k.among), k.given),
        'Returns the current rows of many keys: takes an array for each key column.'
    from k where not k.has_array;
end
$$;
