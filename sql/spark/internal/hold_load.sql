-- pgcombine_internal.hold_load(load)
-- Locks a load's stage until the calling transaction ends, so that clean_loads doesn't remove the load as dead. Locks
-- nothing if the load belongs to another role.
-- The transaction may stay open for long. So the function switches off the transaction's timeouts.
create or replace function pgcombine_internal.hold_load(load uuid)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _stage text;
begin
    -- transaction_timeout: from PostgreSQL 17 on
    perform set_config(s.name, '0', true) from pg_settings s where s.name in ('idle_in_transaction_session_timeout',
        'lock_timeout', 'statement_timeout', 'transaction_timeout');
    select 'spark_stage_' || l.number into _stage from pgcombine.spark_load l where l.load = hold_load.load;
    if found then
        execute format('lock table pgcombine.%I in access share mode', _stage);
    end if;
end
$$;
