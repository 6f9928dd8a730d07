-- pgcombine_internal.oldest_snapshot_for() → bigint
-- Returns oldest_snapshot() to workers. Runs with its owner's rights, since the schema's owner may see other sessions
-- that the caller can't see.
-- Errors: 42501 the caller lacks the right work.
create or replace function pgcombine_internal.oldest_snapshot_for()
returns bigint
language plpgsql volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.require_right(null, 'work', pgcombine_internal.caller());
    return pgcombine_internal.oldest_snapshot();
end
$$;
