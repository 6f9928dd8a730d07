-- pgcombine_internal.hold_load(load)
-- Keeps a load's stage from being removed as dead until the calling transaction ends. The session that directs the load
-- calls it, and so does a task that writes into a front.
-- The transaction may stay open for long: it holds a lock, but no snapshot that would keep dead rows. The function also
-- switches the transaction's timeouts off. It locks nothing if the load belongs to another role.
create or replace function pgcombine_internal.hold_load(load uuid)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _stage text;
begin
    perform set_config(s, '0', true)
        from unnest(array['idle_in_transaction_session_timeout', 'statement_timeout', 'lock_timeout']) s;
    select 'spark_stage_' || l.number into _stage from pgcombine.spark_load l where l.load = hold_load.load;
    if found then
        execute format('lock table pgcombine.%I in access share mode', _stage);
    end if;
end
$$;
