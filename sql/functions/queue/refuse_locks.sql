-- pgcombine.refuse_locks(queue, what, locks, otherwise [, hint])
-- Raises if what is to be done takes more locks at the same time than the server has room for, or it had none: the hint of
-- its error is about max_locks_per_transaction.
--   otherwise  what can be done instead of changing the server's setting, with a comma or semicolon before it
-- Errors: PC011.
create or replace function pgcombine.refuse_locks(queue text, what text, locks bigint, otherwise text, hint text default '')
returns void
language plpgsql stable
as $$
declare
    _setting constant integer := current_setting('max_locks_per_transaction');
    _capacity constant bigint := pgcombine.lock_capacity();
begin
    perform pgcombine.require(locks <= _capacity and coalesce(hint, '') !~ 'max_locks_per_transaction', 'PC011',
        format('to %s queue "%s" takes about %s locks at once; the server has room for %s, for all sessions together', what, queue, locks, _capacity),
        format('set max_locks_per_transaction to %s or more (it is %s) and restart the server%s',
            ceil(locks::numeric * _setting / _capacity) + _setting, _setting, otherwise)); -- others need theirs
end
$$;
