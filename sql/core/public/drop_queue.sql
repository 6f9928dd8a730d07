-- pgcombine.drop_queue(queue [, force])
-- Drops a queue with its updates and values, all in one transaction.
--   force  whether to drop the queue even if updates are pending or quarantined, or a component still uses it. With or
--          without force, components' objects for the queue are dropped, too
-- If the server has no room for locks on all tables, drop the queue in portions: pgcombine queue drop.
-- Tables written: those of close_queue.
-- Errors: PC001 unknown queue; PC003 the isolation level isn't read committed, without force; PC005 updates are
-- pending or quarantined, or a component keeps the queue, without force; PC006 the tables weren't free within
-- lock_timeout; 2BP01 another object depends on its tables or views; 42501 the caller doesn't own the queue; 53200 no
-- room for locks.
create or replace function pgcombine.drop_queue(queue text, force boolean default false)
returns void
language plpgsql
as $$
begin
    perform pgcombine_internal.close_queue(queue, force, wholly => true);
    execute format('drop table pgcombine.%I, pgcombine.%I', queue || '_updates', queue || '_values');
end
$$;
