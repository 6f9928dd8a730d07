-- pgcombine_internal.lock_move(class, queue)
-- Keeps other sessions from moving the queue of a shard until the session ends. The lock is an advisory lock, which any
-- role can take. A move without it could lose updates, so the call raises an error that says who has the lock, after it
-- has tried for a second: the session of a move that was killed needs a moment to end.
--   class  pgcombine.front_shard at the front, pgcombine.move_shard at the shard's node
-- Errors: PC006 another session has the lock.
create or replace function pgcombine_internal.lock_move(class text, queue text)
returns void
language plpgsql
as $$
declare
    _until constant timestamptz := clock_timestamp() + interval '1 s';
    _holder text;
begin
    while not pg_try_advisory_lock(hashtext(class), hashtext(queue)) loop
        if clock_timestamp() > _until then
            select string_agg(h.holder, ', ') into _holder
            from pgcombine_internal.lock_holders(class, hashtext(lock_move.queue)) h;
            raise exception 'another session moves queue "%" (%)', queue,
                coalesce(_holder, 'it has just ended')
                using errcode = 'PC006',
                      hint = 'wait until that ends; if this session moves no shard, end it with pg_terminate_backend';
        end if;
        perform pg_sleep(0.01);
    end loop;
end
$$;
