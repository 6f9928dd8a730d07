-- pgcombine_internal.handoff_slot_sql(queue) → text
-- Returns the statement that computes the slot of each update of a payload (handoff_insert_sql): number, from 1, and
-- slot, from 0 to 255. The slot is the low bits of the key's hash (handoff_hash). It depends neither on the server nor
-- on the queue's buckets.
create or replace function pgcombine_internal.handoff_slot_sql(queue text)
returns text
language sql stable
as $$
    select format('select u.pgcombine_number::integer as number, (%s & 255)::integer as slot from (select $1::text[] as pgcombine_columns) t, lateral (select u.pgcombine_number, %s from unnest(%s) with ordinality as u (%s, pgcombine_number)) u',
        pgcombine_internal.handoff_hash(handoff_slot_sql.queue),
        string_agg(format('u.%1$I::%2$s as %1$I', c.name, c.type), ', ' order by c.position),
        string_agg(format('t.pgcombine_columns[%s]::text[]', o.number), ', ' order by c.position),
        string_agg(format('%I', c.name), ', ' order by c.position))
    from pgcombine.queue_column c
    cross join lateral (select count(*) as number from pgcombine.queue_column o where o.queue = c.queue and o.position <= c.position) o
    where c.queue = handoff_slot_sql.queue and c.role = 'key'
$$;
