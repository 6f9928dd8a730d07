-- pgcombine_internal.handoff_writers() → text[]
-- Returns the transactions that are writing tokens now. Once the transactions of an earlier answer have ended, all
-- writes from before it are visible, and later writes see what was committed before it. (Waiting for a lock instead
-- would hold up new writers.)
create or replace function pgcombine_internal.handoff_writers()
returns text[]
language sql volatile
as $$
    select coalesce(array_agg(distinct l.virtualtransaction), '{}')
    from pg_locks l
    where l.relation = 'pgcombine.handoff_token'::regclass and l.mode = 'RowExclusiveLock' and l.granted
      and l.database = (select d.oid from pg_database d where d.datname = current_database())
      and l.pid is distinct from pg_backend_pid()
$$;
