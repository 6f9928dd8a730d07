-- pgcombine_internal.counted_since() → timestamptz
-- Returns the time since which the server's statistics count rows. They start from zero after a crash, after recovery,
-- and after a reset. Earlier counts can't be compared with present ones.
create or replace function pgcombine_internal.counted_since()
returns timestamptz
language sql stable
as $$
    -- a crash discards the database's own time; then the other one is that of the recovery
    select greatest(pg_stat_get_bgwriter_stat_reset_time(),
                    (select pg_stat_get_db_stat_reset_time(d.oid) from pg_database d
                        where d.datname = current_database()))
$$;
