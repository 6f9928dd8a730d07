-- pgcombine.handoff_writers() → text[]
-- The transactions that are writing tokens now. When those of an earlier answer are gone, whatever was written before
-- can be seen, and later writes see what was committed before. (Waiting for a lock would hold up those who come.)
create or replace function pgcombine.handoff_writers()
returns text[]
language sql volatile
as $$
    select coalesce(array_agg(distinct l.virtualtransaction), '{}')
    from pg_locks l
    where l.relation = 'pgcombine.handoff_token'::regclass and l.mode = 'RowExclusiveLock' and l.granted
      and l.database = (select d.oid from pg_database d where d.datname = current_database())
      and l.pid is distinct from pg_backend_pid()
$$;
