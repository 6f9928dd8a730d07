-- pgcombine_internal.packed_columns(queue, buckets) → text
-- Returns the array columns in which a row of the updates holds further updates, one for each column (see
-- enqueue_function). Null: each row is one update.
-- Only a queue with one bucket packs. With several, each key would have to be routed by its hash, which costs more than
-- packing saves. A queue doesn't pack either if it has a maximum backlog, a type without arrays, or keys that aren't
-- portable (portable_keys).
create or replace function pgcombine_internal.packed_columns(queue text, buckets integer)
returns text
language sql stable
as $$
    select string_agg(format('pgcombine_%s %s[]', c.position, c.type), ', ' order by c.position)
    from pgcombine.queue q
    join pgcombine.queue_column c using (queue)
    join pg_type t on t.oid = c.type::regtype
    join pg_type b on b.oid = pgcombine_internal.base_type(t.oid)
    where q.queue = packed_columns.queue and packed_columns.buckets = 1 and q.max_backlog is null
    having bool_and(t.typarray <> 0 and b.typcategory not in ('A', 'C')) and pgcombine_internal.portable_keys(packed_columns.queue)
$$;
