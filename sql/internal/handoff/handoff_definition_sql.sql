-- pgcombine_internal.handoff_definition_sql(queue) → text
-- Returns the call that creates the same queue on another server, without its observers.
create or replace function pgcombine_internal.handoff_definition_sql(queue text)
returns text
language sql stable
as $$
    select format('select pgcombine.create_queue(%L, %L::text[], %L::text[], %L, %s, %L, %s, max_backlog => %L, quarantine_after => %s)',
        q.queue, c.keys, c.vals, q.delete_when, q.buckets, q.notify, q.pass_limit, q.max_backlog, q.quarantine_after)
    from pgcombine.queue q
    cross join lateral (
        select array_agg(pgcombine_internal.column_definition(o) order by o.position) filter (where o.role = 'key') as keys,
               array_agg(pgcombine_internal.column_definition(o) order by o.position) filter (where o.role = 'value') as vals
        from pgcombine.queue_column o where o.queue = q.queue
    ) c
    where q.queue = handoff_definition_sql.queue
$$;
