-- pgcombine.close_queue(queue, force)
-- Begins to drop a queue: from here to the end of the transaction nobody enqueues or combines, and nothing is
-- pending, held or attached any more, or the transaction fails.
--   force  also when updates are pending, or held because their key is quarantined, or a table is attached, or the
--          queue is exported: its exports are dropped with what waits to be delivered
-- Tables written: as drop_export does.
-- Errors: PC001 unknown queue; PC003 not under read committed, and not forced; PC005 updates are pending or held, a table
-- is attached, or the queue is exported.
create or replace function pgcombine.close_queue(queue text, force boolean)
returns void
language plpgsql
as $$
declare
    _pending bigint;
    _attachment integer;
    _source regclass;
    _export text;
begin
    perform pgcombine.require_queue(close_queue.queue);
    -- what was committed after an older snapshot would be lost uncounted
    if not force and current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'to drop queue "%" needs isolation level read committed', close_queue.queue
            using errcode = 'PC003', hint = 'only so it sees all that is pending; or pass force => true to lose what is';
    end if;
    -- as a pass does, claim before locking tables: a pass under way ends, and doesn't wait for this in turn
    perform from pgcombine.bucket b where b.queue = close_queue.queue order by b.bucket for update;
    for _export in select e.export from pgcombine.export e where e.queue = close_queue.queue order by e.export loop
        if not force then
            raise exception 'queue "%" is exported by "%"', close_queue.queue, _export
                using errcode = 'PC005', hint = format('deliver what waits and drop the export first (pgcombine export run %1$s --drain; '
                    'pgcombine export drop %1$s), or pass force => true to drop it, too, with what waits', _export);
        end if;
        perform pgcombine.drop_export(_export, force => true); -- before the locks below: it waits for deliveries
    end loop;
    -- from here on nobody enqueues or combines, so the count below holds; in the order of the readers of <queue>_current
    execute format('lock table only pgcombine.%I, pgcombine.%I in access exclusive mode',
        close_queue.queue || '_values', close_queue.queue || '_updates');
    _pending := pgcombine.backlog(close_queue.queue);
    if _pending > 0 and not force then
        raise exception 'queue "%" has % pending updates', close_queue.queue, _pending
            using errcode = 'PC005', hint = 'drain it first, or pass force => true to lose them';
    end if;
    execute format('select count(*) from pgcombine.%I', close_queue.queue || '_quarantine') into _pending;
    if _pending > 0 and not force then
        raise exception 'queue "%" has % updates of quarantined keys', close_queue.queue, _pending
            using errcode = 'PC005', hint = 'retry or drop them first, or pass force => true to lose them';
    end if;
    for _attachment, _source in select a.id, a.source from pgcombine.attachment a where a.queue = close_queue.queue order by a.id loop
        if not force and exists (select from pg_class c where c.oid = _source) then
            raise exception 'queue "%" is attached to %, whose changes would fail', close_queue.queue, _source
                using errcode = 'PC005', hint = 'detach it first, or pass force => true';
        end if;
        begin
            perform pgcombine.detach(close_queue.queue, _source);
        exception when insufficient_privilege then -- of another's table: its triggers go with their function
            execute format('drop function pgcombine.%I() cascade', pgcombine.attached_function(_attachment));
            delete from pgcombine.attachment a where a.id = _attachment;
        end;
    end loop;
end
$$;
