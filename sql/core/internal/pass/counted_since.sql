-- pgcombine_internal.counted_since() → timestamptz
-- Returns the time since which the server's statistics count rows. The counts start from zero after a crash, after
-- recovery, and after a reset.
create or replace function pgcombine_internal.counted_since()
returns timestamptz
language sql stable
as $$
    -- A crash discards the reset time of the database. The reset time of the background writer's statistics is then
    -- the time of the recovery.
    select greatest(pg_stat_get_bgwriter_stat_reset_time(),
                    (select pg_stat_get_db_stat_reset_time(d.oid) from pg_database d
                        where d.datname = current_database()))
$$;
