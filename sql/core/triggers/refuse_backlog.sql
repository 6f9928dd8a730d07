-- pgcombine_internal.refuse_backlog() trigger, before insert, statement level, on <queue>_updates; arguments: the
-- queue, its max_backlog
-- Refuses enqueues while max_backlog or more updates are pending.
-- The function counts the pending updates only if the statistics show at least max_backlog insertions since the last
-- passes, or can't show the number: the statistics start from zero after a crash (see counted_since) and on a promoted
-- standby. Workers then soon pass over all buckets (see due). The statistics are up to about a second old, so a
-- statement may exceed the limit.
-- Runs with its owner's rights. The function checks that the table is the queue's, since a role with the right to
-- execute the function could create such a trigger on its own table.
-- Errors: PC010 the queue is full; 42501 the table isn't the queue's.
create or replace function pgcombine_internal.refuse_backlog()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue constant text := tg_argv[0];
    _limit constant bigint := tg_argv[1];
    _since timestamptz;
    _pending bigint;
begin
    if tg_relid is distinct from to_regclass(format('pgcombine.%I', _queue || '_updates')) then
        raise exception 'table % isn''t the log of queue "%"', tg_relid::regclass, _queue
            using errcode = '42501', hint = 'drop the trigger';
    end if;
    _since := pgcombine_internal.counted_since();
    -- The subquery n repeats the function inserted, since the trigger runs for every enqueue and a call takes longer.
    select case when bool_and(p.began > _since and n.inserted >= p.inserted)
                then sum((n.inserted - p.inserted) / (q.buckets / q.partitions)) end -- null: the number is unknown
    into _pending
    from pgcombine.queue q
    join pgcombine.bucket b using (queue)
    cross join lateral (
        select sum(pg_stat_get_tuples_inserted(format('pgcombine.%I',
                   q.queue || '_updates_b' || to_char(b.bucket % q.partitions, 'FM0000') || '_s' || s)::regclass)
               )::bigint as inserted
        from generate_series(0, q.segments - 1) s) n
    cross join lateral (
        select p.inserted, p.began from pgcombine.pass p
        where p.queue = b.queue and p.bucket = b.bucket order by p.pass desc limit 1) p
    where q.queue = _queue;
    if coalesce(_pending >= _limit, true) then
        execute format('select count(*) from (select from pgcombine.%I limit %s) as pending',
            _queue || '_pending', _limit) into _pending;
        if _pending >= _limit then
            raise exception 'queue "%" is full: its maximum backlog is %', _queue, _limit
                using errcode = 'PC010', hint = 'check that workers run, and try again when they have caught up';
        end if;
    end if;
    return null;
end
$$;
