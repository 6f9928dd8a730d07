-- pgcombine_internal.trim_journal([queue]) → bigint
-- Deletes journal rows of passes that ended more than an hour ago, of one queue or of all queues; returns their number.
-- claim_bucket explains the hour. The function first sums up the passes of each minute that has ended, for the view
-- minute_stat. It deletes these sums after a day.
-- The function keeps a bucket's state: the row of the last pass over all keys among the passes that ended more than an
-- hour ago, and the rows of all later passes. A call deletes at most ten thousand rows of a bucket; workers call it
-- repeatedly.
-- Tables written: pgcombine.pass, pass_minute.
create or replace function pgcombine_internal.trim_journal(queue text default null)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _deleted bigint;
begin
    -- Sums up only minutes that ended at least ten seconds ago. A pass writes the time of its end before it commits, so
    -- a pass that ended more recently may still be invisible, and the sum of its minute would lack it.
    insert into pgcombine.pass_minute (queue, minute, passes, updates, keys, changes, seconds)
    select q.queue, date_trunc('minute', p.ended), count(*), sum(p.updates), sum(p.keys), sum(p.changes),
           sum(extract(epoch from p.ended - p.began))
    from pgcombine.queue q
    cross join lateral (
        select coalesce(max(m.minute) + interval '1 minute', '-infinity') as since
        from pgcombine.pass_minute m where m.queue = q.queue) last
    join pgcombine.pass p on p.queue = q.queue and p.updates > 0 and p.ended >= last.since
        and p.ended < date_trunc('minute', clock_timestamp() - interval '10 seconds')
    where trim_journal.queue is null or q.queue = trim_journal.queue
    group by 1, 2
    on conflict do nothing;
    delete from pgcombine.pass_minute m where m.minute < now() - interval '1 day';
    delete from pgcombine.pass p
    using pgcombine.queue q
    join pgcombine.bucket b using (queue)
    cross join lateral (
        select max(o.pass) filter (where o.range_mask is null
            and o.ended < clock_timestamp() - interval '1 hour') as pass,
               min(o.pass) as first, count(*) = 10000 as more
        from (select a.pass, a.range_mask, a.ended from pgcombine.pass a
              where a.queue = b.queue and a.bucket = b.bucket order by a.pass limit 10000) o) oldest
    cross join lateral (
        select case when oldest.more and coalesce(oldest.pass,
            oldest.first) = oldest.first -- no other of these rows is an old pass over all keys
            then (select max(a.pass) from pgcombine.pass a where a.queue = b.queue and a.bucket = b.bucket
                      and a.range_mask is null and a.ended < clock_timestamp() - interval '1 hour')
            else oldest.pass end as pass) kept
    where (trim_journal.queue is null or q.queue = trim_journal.queue)
      and p.queue = b.queue and p.bucket = b.bucket and p.pass < kept.pass and p.pass < oldest.first + 10000;
    get diagnostics _deleted = row_count;
    return _deleted;
end
$$;
