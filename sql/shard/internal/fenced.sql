-- pgcombine_internal.fenced(queue) → boolean
-- Returns whether a queue refuses updates (see fence_shard).
create or replace function pgcombine_internal.fenced(queue text)
returns boolean
language sql stable
as $$
    select exists (select from pg_trigger t where t.tgname = 'pgcombine_moved' and t.tgenabled <> 'D'
        and t.tgrelid = to_regclass(format('pgcombine.%I', fenced.queue || '_updates')))
$$;
