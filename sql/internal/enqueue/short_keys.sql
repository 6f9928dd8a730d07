-- pgcombine_internal.short_keys(queue, parameters) → text
-- Returns the condition that no key in some arrays is null or longer than keys may be.
-- A short array that isn't compressed can't hold a long key, so the condition seldom looks at the elements.
--   parameters  a format that makes an array's name of the column's position: 'pgcombine_%s'
create or replace function pgcombine_internal.short_keys(queue text, parameters text)
returns text
language sql stable
as $$
    select string_agg(format('num_nulls(variadic %s) = 0', a.name)
        || case when t.typlen <> -1 then '' else format(
            ' and (pg_column_size(%1$s) <= %2$s and pg_column_compression(%1$s) is null or pgcombine_internal.longest(%1$s) <= %2$s)', a.name,
            2600 / (select count(*) from pgcombine.queue_column k join pg_type y on y.oid = k.type::regtype
                    where k.queue = $1 and k.role = 'key' and y.typlen = -1)) end, ' and ' order by c.position)
    from pgcombine.queue_column c
    join pg_type t on t.oid = c.type::regtype
    cross join lateral format(short_keys.parameters, c.position) a (name)
    where c.queue = short_keys.queue and c.role = 'key'
$$;
