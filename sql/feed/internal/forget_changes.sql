-- pgcombine_internal.forget_changes(queue)
-- Drops the kept changes of a queue, unless they are read as a feed or an export delivers them. The caller has claimed
-- all buckets of the queue. The call waits for readers of the changes. Meanwhile no pass over the queue begins. So the
-- call waits for the lock on the changes at most for lock_timeout, or for 5 seconds if there is no lock_timeout.
-- Tables written: change_log, change_bucket, component_table, observer, queue, bucket.
-- Errors: PC006 sessions have read the changes for too long.
create or replace function pgcombine_internal.forget_changes(queue text)
returns void
language plpgsql
as $$
declare
    _table constant text := forget_changes.queue || '_changes';
    _timeout constant text := current_setting('lock_timeout');
begin
    if exists (select from pgcombine.change_log l where l.queue = forget_changes.queue and l.feed is not null)
        or exists (select from pgcombine.export e join pgcombine.export_bucket x using (export)
                   where e.queue = forget_changes.queue and x.after is not null)
    then
        return;
    end if;
    begin
        perform set_config('lock_timeout', coalesce(nullif(_timeout, '0'), '5s'), true);
        execute format('lock table pgcombine.%I in access exclusive mode', _table);
        perform set_config('lock_timeout', _timeout, true);
    exception when lock_not_available then
        raise exception 'the changes of queue "%" can''t be dropped while sessions are reading them',
            forget_changes.queue using errcode = 'PC006',
            hint = 'nothing was changed; look for long transactions in pg_stat_activity, or set lock_timeout to a '
                'longer time';
    end;
    perform pgcombine.drop_observer(o.queue, o.observer)
    from pgcombine.observer o
    where o.queue = forget_changes.queue and o.observer in ('changes', 'changes sequence');
    execute format('drop table pgcombine.%I', _table);
    delete from pgcombine.component_table t where t.name = _table;
    delete from pgcombine.change_log l where l.queue = forget_changes.queue;
end
$$;
