-- pgcombine_internal.failures() → (queue, bucket, expires, attempts, sqlstate, error, since, retry_at)
-- For the queues whose failures the caller may see, returns the failures of passes (see fail_pass), and the buckets
-- where the removal of expired keys failed. The policies of the tables hide these rows from roles that must not see the
-- errors; this function shows such roles the rows without the errors.
--   expires  whether the row is about expired keys; attempts and retry_at are null then
--   error    null for a role that monitors and can't read the queue, since errors name keys and values
-- Runs with its owner's rights. Every role may call it.
create or replace function pgcombine_internal.failures(out queue text, out bucket integer, out expires boolean,
    out attempts integer,
    out sqlstate text, out error text, out since timestamptz, out retry_at timestamptz)
returns setof record
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _role constant name := pgcombine_internal.caller();
begin
    return query
    select f.queue, f.bucket, f.expires, f.attempts, f.sqlstate, case
        when pgcombine_internal.has_right(f.queue, 'explain', _role) then f.error end,
           f.since, f.retry_at
    from (
        select p.queue, p.bucket, false, p.attempts, p.sqlstate, p.error, p.since, p.retry_at from pgcombine.failure p
        union all
        select r.queue, r.bucket, true, null, r.sqlstate, r.error, r.failed_at, null from pgcombine.expiry r
            where r.error is not null
    ) f (queue, bucket, expires, attempts, sqlstate, error, since, retry_at)
    where pgcombine_internal.has_right(f.queue, 'watch', _role);
end
$$;
