-- pgcombine_internal.run_applied(queue, run_id [, role]) → boolean
-- Returns whether a role's run into a queue was applied. The run id of a stream's batch is 'stream:<query>:<batch>'.
-- Batches are applied in order, so a batch was applied if this batch or a later one is recorded.
create or replace function pgcombine_internal.run_applied(queue text, run_id text, role text default current_user)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pgcombine.token r where r.queue = $1 and r.role = $3 and r.token = $2)
        or exists (select from pgcombine.token r
                   where r.queue = $1 and r.role = $3 and r.stream = substring($2 from '^stream:(.+):[0-9]{1,18}$')
                     and r.batch >= substring($2 from '^stream:.+:([0-9]{1,18})$')::bigint)
$$;
