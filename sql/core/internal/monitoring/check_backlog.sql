-- pgcombine_internal.check_backlog([queue])
-- Notes whether queues with a maximum backlog are full, that is whether as many updates are pending. The trigger
-- refuse_backlog reads the note. Workers call the function each second, and drain at its end. So a queue may get more
-- updates than max_backlog within that second, and has no limit while no worker runs. If another session keeps a
-- queue's tables locked, the note on that queue stays as it is.
--   queue  null: all queues
-- Tables written: pgcombine.queue.
create or replace function pgcombine_internal.check_backlog(queue text default null)
returns void
language plpgsql
set lock_timeout = '200ms'
as $$
declare
    _queue record;
    _full boolean;
begin
    for _queue in
        select q.queue, q.max_backlog from pgcombine.queue q
        where q.max_backlog is not null and (check_backlog.queue is null or q.queue = check_backlog.queue)
    loop
        begin
            execute format('select count(*) = $1 from (select from pgcombine.%I limit $1) as pending',
                _queue.queue || '_pending') into _full using _queue.max_backlog;
            update pgcombine.queue q set is_full = _full where q.queue = _queue.queue and q.is_full <> _full;
        exception when lock_not_available or undefined_table then null; -- the table is missing if the queue was dropped
        end;
    end loop;
end
$$;
