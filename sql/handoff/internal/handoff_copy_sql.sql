-- pgcombine_internal.handoff_copy_sql(queue, slots, destination) → (shape, definition, columns, values_sql,
--   updates_sql, tokens_sql, refused_sql)
-- Returns, at the source of a rebuild, the definition of a queue, and four queries that the rebuild runs in one
-- snapshot.
--   slots        the slots of keys to copy; null: all
--   destination  name of the server that is rebuilt
--   shape        see handoff_shape; null: there is no such queue
--   definition   the call that creates the same queue, without its observers and tablespaces, and with a partition for
--                each bucket
--   columns      the queue's columns
--   values_sql   returns the values
--   updates_sql  returns the updates that are pending or quarantined
--   tokens_sql   returns the writes that the destination must have, as rows of handoff_stage; with the payload if the
--                source has it
--   refused_sql  returns the updates that the source refused and still lacks (handoff_refused)
create or replace function pgcombine_internal.handoff_copy_sql(queue text, slots integer[], destination text,
    out shape uuid, out definition text, out columns text, out values_sql text, out updates_sql text,
    out tokens_sql text, out refused_sql text)
language plpgsql stable
as $$
declare
    _where constant text := case when slots is null then ''
        else format(' where (%s & 255)::integer = any (%L::integer[])',
            pgcombine_internal.handoff_hash(queue), slots) end;
begin
    shape := pgcombine_internal.handoff_shape(queue);
    select format('select pgcombine.create_queue(%L, %L::text[], %L::text[], %L, %s, %L, %s, max_backlog => %L, '
        'quarantine_after => %s, expire_when => %L, expire_silently => %L, expire_every => %L, '
        'token_retention => %L)',
        q.queue, c.keys, c.vals, q.delete_when, q.buckets, q.notify, q.pass_limit, q.max_backlog, q.quarantine_after,
        q.expire_when, q.expire_silently, q.expire_every, q.token_retention) into definition
    from pgcombine.queue q
    cross join lateral (
        select array_agg(d order by o.position) filter (where o.role = 'key') as keys,
               array_agg(d order by o.position) filter (where o.role = 'value') as vals
        from pgcombine.queue_column o, pgcombine_internal.column_definition(o) d where o.queue = q.queue
    ) c
    where q.queue = handoff_copy_sql.queue;
    columns := pgcombine_internal.column_list(queue);
    values_sql := format('select %s from pgcombine.%I%s', columns, queue || '_values', _where);
    updates_sql := pgcombine_internal.fill('select {columns} from pgcombine.{pending}{where} union all select '
        '{columns} from pgcombine.{quarantine}{where}',
        jsonb_build_object('columns', columns, 'pending', quote_ident(queue || '_pending'),
            'quarantine', quote_ident(queue || '_quarantine'), 'where', _where));
    refused_sql := format('select f.* from pgcombine.handoff_refused f where f.queue = %L', queue)
        || case when slots is null then ''
            else format(' and exists (select from (%s) n where n.slot = any (%L::integer[]))',
            replace(pgcombine_internal.handoff_slot_sql(queue), '$1', 'f.payload'), slots) end;
    tokens_sql := format('select s.name, k.token, k.queue, k.digest, k.servers, t.shape, t.updates, t.payload, '
        't.placed, t.replicas, t.coordinator
        from pgcombine.handoff_server s
        cross join pgcombine.handoff_token k
        left join pgcombine_internal.handoff_payloads(%1$L, null) t on t.token = k.token and t.digest = k.digest
        where k.queue = %1$L and (k.servers is null or k.servers @> array[%2$L])', queue, destination);
end
$$;
