-- pgcombine_internal.refuse_locks(queue, what, locks, otherwise [, hint])
-- Raises if an action needs more locks at the same time than the server has room for, or has failed for lack of locks.
--   what       the action, for the message
--   locks      number of locks that the action needs
--   otherwise  a remedy besides the server's setting; it begins with a comma or a semicolon
--   hint       the hint of the error with which the action failed. It names max_locks_per_transaction if the server had
--              no room for locks
-- Errors: PC011 too many locks.
create or replace function pgcombine_internal.refuse_locks(queue text, what text, locks bigint, otherwise text,
    hint text default '')
returns void
language plpgsql stable
as $$
declare
    _setting constant integer := current_setting('max_locks_per_transaction');
    _capacity constant bigint := pgcombine_internal.lock_capacity();
begin
    perform pgcombine_internal.require(locks <= _capacity
        and coalesce(hint, '') !~ 'max_locks_per_transaction', 'PC011',
        format('to %s queue "%s" takes about %s locks at once; the server has room for %s, for all sessions together',
            what, queue, locks, _capacity),
        format('set max_locks_per_transaction to %s or more (it is %s) and restart the server%s',
            -- with some room for other sessions
            ceil(locks::numeric * _setting / _capacity) + _setting, _setting, otherwise));
end
$$;
