-- pgcombine_internal.post_restore_queue(queue)
-- The part of post_restore for one queue: appends the queue's pending updates again, removes all other updates, and
-- replaces the journal by new marks.
-- Tables written: <queue>_updates; pgcombine.pass.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.post_restore_queue(queue text)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(post_restore_queue.queue);
    _updates constant text := format('pgcombine.%I', _queue.queue || '_updates');
    _columns constant text := pgcombine_internal.column_list(_queue.queue);
    _segments constant text[] := array(
        select s from generate_series(0, _queue.partitions - 1) p
        cross join lateral unnest(pgcombine_internal.segment_tables(_queue.queue, p)) s);
    _triggers constant text[] := array(select t.tgname from pg_trigger t where t.tgrelid = _updates::regclass
        and not t.tgisinternal and t.tgenabled <> 'D');
    _segment text;
    _trigger text;
begin
    execute format('create table pgcombine.%I as select %s from %s', _queue.queue || '_adopted', _columns,
        case when pgcombine_internal.stable_hash(_queue.queue) then format('pgcombine.%I', _queue.queue || '_pending')
             else pgcombine_internal.log_sql(_queue.queue, _segments, 'true') end);
    foreach _segment in array _segments loop
        if pg_relation_size(_segment::regclass) > 0 then
            execute format('truncate %s', _segment);
        end if;
    end loop;
    -- no limit applies to updates that the queue already had
    execute format('alter table %s disable trigger user', _updates);
    execute format('insert into %s (%s) select %s from pgcombine.%I', _updates, _columns, _columns,
        _queue.queue || '_adopted');
    foreach _trigger in array _triggers loop
        execute format('alter table %s enable trigger %I', _updates, _trigger);
    end loop;
    execute format('drop table pgcombine.%I', _queue.queue || '_adopted');
    -- In the new marks this transaction is in progress, so the updates that it has appended are pending.
    perform pgcombine_internal.mark_all(_queue.queue);
    delete from pgcombine.pass p
    using (select l.bucket, max(l.pass) as pass from pgcombine.pass l where l.queue = _queue.queue
        group by l.bucket) last
    where p.queue = _queue.queue and p.bucket = last.bucket and p.pass < last.pass;
end
$$;
