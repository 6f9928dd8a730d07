-- pgcombine.pending_sql(queue) → text
-- The query of <queue>_pending: each pending update, however it is stored.
-- The columns are of the queue's types: were a key's another in one half of a union, conditions on it wouldn't reach the
-- tables.
create or replace function pgcombine.pending_sql(queue text)
returns text
language sql stable
as $$
    select format('select %s from %s%s', string_agg(format('%1$I::%2$s as %1$I', c.name, c.type), ', ' order by c.position),
        u.name, ' union all ' || pgcombine.packed_updates(pending_sql.queue, u.name, searched => true))
    from pgcombine.queue_column c, format('pgcombine.%I', pending_sql.queue || '_updates') as u (name)
    where c.queue = pending_sql.queue
    group by u.name
$$;
