-- pgcombine.handoff_slot_sql(queue) → text
-- The statement that gives the slot of each update of a payload (handoff_insert_sql): number, from 1, and slot, 0 to
-- 255: the low bits of the key's hash (key_hash). Slots don't depend on how many buckets a server's queue has.
create or replace function pgcombine.handoff_slot_sql(queue text)
returns text
language sql stable
as $$
    select format('select u.number::integer as number, (%s & 255)::integer as slot from (select $1::text[] as c) t, lateral (select number, %s from unnest(%s) with ordinality as u (%s, number)) u',
        pgcombine.key_hash(handoff_slot_sql.queue),
        string_agg(format('u.%1$I::%2$s as %1$I', c.name, c.type), ', ' order by c.position),
        string_agg(format('t.c[%s]::text[]', o.number), ', ' order by c.position),
        string_agg(format('%I', c.name), ', ' order by c.position))
    from pgcombine.queue_column c
    cross join lateral (select count(*) as number from pgcombine.queue_column o where o.queue = c.queue and o.position <= c.position) o
    where c.queue = handoff_slot_sql.queue and c.role = 'key'
$$;
