-- pgcombine.drop_queue(queue [, force])
-- Drops a queue with its updates and values.
--   force  also when updates are pending, or held because their key is quarantined, or a table is attached
-- Tables written: pgcombine.queue, queue_column, bucket, combiner.
-- Errors: PC001 unknown queue; PC005 updates are pending or held, or a table is attached.
create or replace function pgcombine.drop_queue(queue text, force boolean default false)
returns void
language plpgsql
as $$
declare
    _pending bigint;
    _source regclass;
begin
    perform pgcombine.require_queue(drop_queue.queue);
    -- as a pass does, claim before locking tables: a pass under way ends, and doesn't wait for this in turn
    perform from pgcombine.bucket b where b.queue = drop_queue.queue order by b.bucket for update;
    -- from here on nobody enqueues or combines, so the count below holds
    execute format('lock table pgcombine.%I in access exclusive mode', drop_queue.queue || '_updates');
    _pending := pgcombine.backlog(drop_queue.queue);
    if _pending > 0 and not force then
        raise exception 'queue "%" has % pending updates', drop_queue.queue, _pending
            using errcode = 'PC005', hint = 'drain it first, or pass force => true to lose them';
    end if;
    execute format('select count(*) from pgcombine.%I', drop_queue.queue || '_quarantine') into _pending;
    if _pending > 0 and not force then
        raise exception 'queue "%" has % updates of quarantined keys', drop_queue.queue, _pending
            using errcode = 'PC005', hint = 'retry or drop them first, or pass force => true to lose them';
    end if;
    for _source in
        select t.tgrelid from pg_trigger t
        where t.tgfoid = 'pgcombine.attached'::regproc and t.tgname = 'pgcombine_' || drop_queue.queue || '_insert'
    loop
        if not force then
            raise exception 'queue "%" is attached to %, whose changes would fail', drop_queue.queue, _source
                using errcode = 'PC005', hint = 'detach it first, or pass force => true';
        end if;
        perform pgcombine.detach(drop_queue.queue, _source);
    end loop;
    execute format('drop view pgcombine.%I, pgcombine.%I', drop_queue.queue || '_current', drop_queue.queue || '_pending');
    execute format('drop table pgcombine.%I, pgcombine.%I, pgcombine.%I', drop_queue.queue || '_updates',
        drop_queue.queue || '_values', drop_queue.queue || '_quarantine');
    delete from pgcombine.queue q where q.queue = drop_queue.queue;
    perform pgcombine.drop_unused_combiners();
end
$$;
