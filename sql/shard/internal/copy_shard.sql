-- pgcombine_internal.copy_shard(queue) → (source, target)
-- Returns the statements that copy the queue of a shard to another node, in order. If source is null, target is a
-- statement for that node. Otherwise the rows of COPY source go to COPY target. The other node runs all targets in one
-- transaction.
-- Keeps passes, rebucket and new definitions away from the queue until the caller's transaction ends.
-- Errors: PC001 unknown queue; 40001 updates are pending; those of claim_buckets and require_movable.
create or replace function pgcombine_internal.copy_shard(queue text)
returns table (source text, target text)
language plpgsql
as $$
declare
    _queue pgcombine.queue;
    _columns text;
begin
    perform pgcombine_internal.claim_buckets(queue, 'move of a shard');
    perform pgcombine_internal.require_movable(queue);
    perform pgcombine_internal.require(pgcombine.backlog(queue) = 0, '40001',
        format('updates of queue "%s" are pending again', queue), 'run the command again');
    _queue := pgcombine_internal.require_queue(queue);
    _columns := pgcombine_internal.column_list(_queue.queue);
    target := format('select pgcombine.create_queue(%L, %L::text[], %L::text[], delete_when => %L, buckets => %L,
        notify => %L, pass_limit => %L, buckets_per_partition => %L, max_backlog => %L, quarantine_after => %L,
        expire_when => %L, expire_silently => %L, expire_every => %L, token_retention => %L)', _queue.queue,
        array(select pgcombine_internal.column_definition(c) from pgcombine.queue_column c
              where (c.queue, c.role) = (_queue.queue, 'key') order by c.position),
        array(select pgcombine_internal.column_definition(c) from pgcombine.queue_column c
              where (c.queue, c.role) = (_queue.queue, 'value') order by c.position),
        _queue.delete_when, _queue.buckets, _queue.notify, _queue.pass_limit, _queue.buckets / _queue.partitions,
        _queue.max_backlog, _queue.quarantine_after, _queue.expire_when, _queue.expire_silently, _queue.expire_every,
        _queue.token_retention);
    return next;
    for target in
        select format('select pgcombine.grant_right(%L, %L, %L)', g."right", g.role, g.queue)
        from pgcombine.rights g where g.queue = _queue.queue order by g."right", g.role
    loop
        return next;
    end loop;
    target := format('select pgcombine_internal.begin_initialize(%L)', _queue.queue);
    return next;
    source := format('copy (select %s from pgcombine.%I) to stdout', _columns, _queue.queue || '_values');
    target := format('copy pgcombine.%I (%s) from stdin', _queue.queue || '_values', _columns);
    return next;
    source := format('copy (select t.queue, t.role, t.token, t.updates, t.at from pgcombine.token t where t.queue = %L)
        to stdout', _queue.queue);
    target := 'copy pgcombine.token (queue, role, token, updates, at) from stdin';
    return next;
    source := null;
    target := format('select pgcombine_internal.end_initialize(%L)', _queue.queue);
    return next;
end
$$;
