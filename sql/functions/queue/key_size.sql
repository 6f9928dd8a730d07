-- pgcombine.key_size(queue [, of]) → text
-- The expression for the size of a row's key in bytes; null: all key columns are of fixed size.
--   of  what qualifies the columns, with its dot
create or replace function pgcombine.key_size(queue text, "of" text default '')
returns text
language sql stable
as $$
    select string_agg(format(case when t.typcategory = 'S' then 'octet_length(%s%I::text)'
                                  when pgcombine.base_type(t.oid) = 'bytea'::regtype then 'octet_length(%s%I)'
                                  else 'pg_column_size(%s%I)' end, key_size."of", c.name), ' + ' order by c.position)
    from pgcombine.queue_column c join pg_type t on t.oid = c.type::regtype
    where c.queue = key_size.queue and c.role = 'key' and t.typlen = -1
$$;
