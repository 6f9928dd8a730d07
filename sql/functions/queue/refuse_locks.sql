-- pgcombine.refuse_locks(queue, what, locks, otherwise)
-- Raises: what is to be done takes more locks at the same time than the server has room for.
--   otherwise  what can be done instead of changing the server's setting, with a comma or semicolon before it
-- Errors: PC011.
create or replace function pgcombine.refuse_locks(queue text, what text, locks bigint, otherwise text)
returns void
language plpgsql stable
as $$
begin
    raise exception 'to % queue "%" takes about % locks at once; the server has room for %, for all sessions together',
        refuse_locks.what, refuse_locks.queue, refuse_locks.locks, pgcombine.lock_capacity()
        using errcode = 'PC011', hint = format('set max_locks_per_transaction to %s or more (it is %s) and restart the server%s',
            ceil(refuse_locks.locks::numeric / pgcombine.lock_slots()) + current_setting('max_locks_per_transaction')::integer, -- others need theirs
            current_setting('max_locks_per_transaction'), refuse_locks.otherwise);
end
$$;
