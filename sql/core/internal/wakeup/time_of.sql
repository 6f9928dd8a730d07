-- pgcombine_internal.time_of(id) → timestamptz
-- Returns a time since when a transaction may be over: the last recorded time (see tick) before its end. So what the
-- transaction wrote has been visible no longer than since then. The time is right to about a second where a worker or a
-- monitor runs. An id that is older than all recorded times is as old as the first of them at least.
create or replace function pgcombine_internal.time_of(id bigint)
returns timestamptz
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select case when time_of.id >= txid_snapshot_xmax(txid_current_snapshot()) then clock_timestamp()
                when time_of.id is not null then coalesce(
                    (select t.at from pgcombine.tick t where t.next_id <= time_of.id order by t.next_id desc,
                        t.at desc limit 1),
                    (select min(t.at) from pgcombine.tick t),
                    pg_postmaster_start_time()) end
$$;
