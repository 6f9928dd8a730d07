-- pgcombine.run_applied(queue, run_id [, role]) → boolean
-- Whether the updates of this run of a role are in the queue already. The id 'stream:<query>:<batch>' is that of a
-- stream's batch: batches come one after the other, so it was applied if that one or a later one was.
create or replace function pgcombine.run_applied(queue text, run_id text, role text default current_user)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pgcombine.spark_run r where r.queue = $1 and r.role in ($3, '') and r.run_id = $2)
        or exists (select from pgcombine.spark_run r
                   where r.queue = $1 and r.role in ($3, '') and r.stream = substring($2 from '^stream:(.+):[0-9]{1,18}$')
                     and r.batch >= substring($2 from '^stream:.+:([0-9]{1,18})$')::bigint)
$$;
