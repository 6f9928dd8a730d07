-- pgcombine_internal.handoff_remembers(token) → boolean
-- Returns whether this server has a token that it once acknowledged. False: the server has lost commits, for example
-- because it was restored from an older backup. The result is also true for tokens that prove nothing: those older than
-- the retention, or older than the last drop of a queue here, which deletes tokens.
-- Runs with its owner's rights, for roles that may replicate writes.
-- Errors: 42501 the caller lacks the right to replicate writes.
create or replace function pgcombine_internal.handoff_remembers(token uuid)
returns boolean
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.handoff_require();
    return exists (select from pgcombine.handoff_token k where k.token = handoff_remembers.token)
        or pgcombine_internal.handoff_time(handoff_remembers.token) < now() - (select s.retention
            from pgcombine.handoff_server s)
        or coalesce(pgcombine_internal.handoff_time(handoff_remembers.token)
                    <= (select max(q.dropped_at) from pgcombine.handoff_queue q), false);
end
$$;
