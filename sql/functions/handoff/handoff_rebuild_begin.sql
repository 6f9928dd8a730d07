-- pgcombine.handoff_rebuild_begin()
-- At the server that is rebuilt, in the transaction that does it: from now to its end no write is taken or applied
-- here (PC046), and those under way have ended. A temporary table awaits the tokens: handoff_stage.
-- Errors: PC046 another rebuild is under way; PC003 not under read committed.
create or replace function pgcombine.handoff_rebuild_begin()
returns void
language plpgsql
as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then -- passes that end now must be seen
        raise exception 'a rebuild needs isolation level read committed'
            using errcode = 'PC003', hint = 'begin transaction isolation level read committed';
    end if;
    if not pg_try_advisory_xact_lock(hashtext('pgcombine.handoff_rebuild'), 1) then
        raise exception 'another rebuild of this server is under way'
            using errcode = 'PC046', hint = 'let it end';
    end if;
    perform set_config('idle_in_transaction_session_timeout', '0', true);
    perform pg_advisory_xact_lock(hashtext('pgcombine.handoff_rebuild'), 0);
    create temporary table handoff_stage (
        source text not null, token uuid not null, queue text not null, digest uuid not null, servers text[]
    ) on commit drop;
end
$$;
