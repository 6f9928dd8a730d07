-- pgcombine_internal.sum_minutes(queue)
-- Adds up the journal of a queue by the minute, for queue_stat. The minute under way is left out, and so are the last
-- ten seconds, since a pass may not have committed yet. Sums are kept for a day.
-- Tables written: pgcombine.pass_minute.
create or replace function pgcombine_internal.sum_minutes(queue text)
returns void
language sql
as $$
    insert into pgcombine.pass_minute (queue, minute, passes, updates, keys, changes, seconds)
    select p.queue, date_trunc('minute', p.ended), count(*), sum(p.updates), sum(p.keys), sum(p.changes),
           sum(extract(epoch from p.ended - p.began))
    from pgcombine.pass p
    where p.queue = sum_minutes.queue and p.updates > 0
      and p.ended >= coalesce((select max(m.minute) + interval '1 minute' from pgcombine.pass_minute m where m.queue = sum_minutes.queue), '-infinity')
      and p.ended < date_trunc('minute', clock_timestamp() - interval '10 seconds')
    group by p.queue, date_trunc('minute', p.ended)
    on conflict do nothing;
    delete from pgcombine.pass_minute m where m.queue = sum_minutes.queue and m.minute < now() - interval '1 day'
$$;
