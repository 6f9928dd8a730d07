-- pgcombine_internal.short_keys(queue, parameters) → text
-- Returns the condition that no key in some arrays is null or longer than keys may be.
-- A short array that isn't compressed can't hold a long key, so the condition seldom looks at the elements.
--   parameters  a template (see column_list) of an array's name: 'pgcombine_{position}'
create or replace function pgcombine_internal.short_keys(queue text, parameters text)
returns text
language sql stable
as $$
    select string_agg(pgcombine_internal.fill('num_nulls(variadic {array}) = 0' || case when t.typlen <> -1 then '' else
            ' and (pg_column_size({array}) <= {limit} and pg_column_compression({array}) is null or pgcombine_internal.longest({array}) <= {limit})' end,
        jsonb_build_object('array', pgcombine_internal.fill(short_keys.parameters, jsonb_build_object('position', c.position)), 'limit',
            2600 / (select nullif(count(*), 0) from pgcombine.queue_column k join pg_type y on y.oid = k.type::regtype
                    where k.queue = $1 and k.role = 'key' and y.typlen = -1))), ' and ' order by c.position)
    from pgcombine.queue_column c
    join pg_type t on t.oid = c.type::regtype
    where c.queue = short_keys.queue and c.role = 'key'
$$;
