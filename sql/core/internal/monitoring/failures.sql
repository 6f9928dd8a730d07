-- pgcombine_internal.failures() → (queue, bucket, expires, attempts, sqlstate, error, since, retry_at)
-- Returns the failures of passes (see fail_pass), and the buckets where the removal of expired keys failed.
--   expires  whether the row is about expired keys; attempts and retry_at are null then
--   error    null for a role that monitors and doesn't work, since errors name keys and values
-- Runs with its owner's rights, for roles that monitor or work.
-- Errors: 42501 the caller lacks the right monitor.
create or replace function pgcombine_internal.failures(out queue text, out bucket integer, out expires boolean,
    out attempts integer, out sqlstate text, out error text, out since timestamptz, out retry_at timestamptz)
returns setof record
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _told constant boolean := pgcombine_internal.has_right(null, 'work', pgcombine_internal.caller());
begin
    perform pgcombine_internal.require_right(null, 'monitor', pgcombine_internal.caller());
    return query
    select p.queue, p.bucket, false, p.attempts, p.sqlstate, case when _told then p.error end, p.since, p.retry_at
    from pgcombine.failure p
    union all
    select r.queue, r.bucket, true, null, r.sqlstate, case when _told then r.error end, r.failed_at, null
    from pgcombine.expiry r where r.error is not null;
end
$$;
