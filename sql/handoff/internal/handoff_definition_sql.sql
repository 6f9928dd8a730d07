-- pgcombine_internal.handoff_definition_sql(queue) → text
-- Returns the call that creates the same queue on another server, without its observers. The options about keys that
-- expire are named only where they are set, since a server of an older version doesn't know them.
create or replace function pgcombine_internal.handoff_definition_sql(queue text)
returns text
language sql stable
as $$
    select format('select pgcombine.create_queue(%L, %L::text[], %L::text[], %L, %s, %L, %s, max_backlog => %L, '
        'quarantine_after => %s%s)',
        q.queue, c.keys, c.vals, q.delete_when, q.buckets, q.notify, q.pass_limit, q.max_backlog, q.quarantine_after,
        case when q.retain is not null then format(', retain => %L, retain_silently => %L, retain_every => %L',
            q.retain, q.retain_silently, q.retain_every) end)
    from pgcombine.queue q
    cross join lateral (
        select array_agg(pgcombine_internal.column_definition(o)
            order by o.position) filter (where o.role = 'key') as keys,
               array_agg(pgcombine_internal.column_definition(o)
                   order by o.position) filter (where o.role = 'value') as vals
        from pgcombine.queue_column o where o.queue = q.queue
    ) c
    where q.queue = handoff_definition_sql.queue
$$;
