-- pgcombine_internal.handoff_rebuild_begin()
-- Begins a rebuild, at the server that is rebuilt and in the transaction of the rebuild. Until the transaction ends,
-- other sessions get PC046 when they bring this server a write.
-- The function waits for the writes in progress: at most for a minute, or for lock_timeout if that is set. It switches
-- off idle_in_transaction_session_timeout and transaction_timeout for the transaction, and makes the temporary table
-- handoff_stage for the tokens.
-- Errors: PC046 another rebuild is in progress, or a write doesn't end in time; PC003 the isolation level isn't read
-- committed.
create or replace function pgcombine_internal.handoff_rebuild_begin()
returns void
language plpgsql
as $$
declare
    _timeout constant text := current_setting('lock_timeout');
    _writers text;
begin
    perform pgcombine_internal.portable_text();
    -- a snapshot from before this call would miss passes that have ended since
    perform pgcombine_internal.require(current_setting('transaction_isolation') = 'read committed', 'PC003',
        'a rebuild needs isolation level read committed', 'begin transaction isolation level read committed');
    begin
        -- a rebuild holds the lock until it ends, others (see handoff_clean_up) for a short time
        perform set_config('lock_timeout', '5s', true) where _timeout = '0';
        perform from pgcombine.handoff_server for update;
        perform set_config('lock_timeout', _timeout, true);
    exception when lock_not_available then
        raise exception 'another rebuild of this server is in progress'
            using errcode = 'PC046', hint = 'wait until it has ended';
    end;
    -- transaction_timeout: from PostgreSQL 17 on
    perform set_config(s.name, '0', true) from pg_settings s
        where s.name in ('idle_in_transaction_session_timeout', 'transaction_timeout');
    begin
        perform set_config('lock_timeout', '1min', true) where _timeout = '0';
        lock table pgcombine.handoff_partial in share mode; -- from now on handoff_check raises PC046
        perform set_config('lock_timeout', _timeout, true);
    exception when lock_not_available then
        select string_agg(k.pid::text, ', ' order by k.pid) into _writers
        from pg_locks k
        where k.relation = 'pgcombine.handoff_partial'::regclass and k.granted and k.mode <> 'AccessShareLock';
        raise exception 'the rebuild waited too long for writes in progress in sessions %',
            coalesce(_writers, '(they have ended by now)')
            using errcode = 'PC046',
                hint = 'let them end, or end them with pg_terminate_backend, then run the rebuild again';
    end;
    create temporary table handoff_stage (
        source text not null, token uuid not null, queue text not null, digest uuid not null, servers text[],
        shape uuid, updates integer, payload text, placed text[], replicas integer, coordinator uuid
    ) on commit drop;
end
$$;
