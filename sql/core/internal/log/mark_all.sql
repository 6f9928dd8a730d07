-- pgcombine_internal.mark_all(queue [, mark])
-- Writes a journal row without updates for each bucket, so that updates which the mark sees are no longer pending. The
-- caller makes sure that no pass runs meanwhile.
--   mark  null: the current mark (see current_mark)
-- Tables written: pgcombine.pass.
create or replace function pgcombine_internal.mark_all(queue text, mark txid_snapshot default null)
returns void
language sql
as $$
    insert into pgcombine.pass (queue, bucket, pass, mark, began, updates, keys, changes)
    select b.queue, b.bucket, coalesce(max(p.pass) + 1, 0),
        coalesce(mark_all.mark, pgcombine_internal.current_mark())::text::pg_snapshot, clock_timestamp(), 0, 0, 0
    from pgcombine.queue q
    join pgcombine.bucket b using (queue)
    left join pgcombine.pass p using (queue, bucket)
    where q.queue = mark_all.queue
    group by q.queue, b.queue, b.bucket
$$;
