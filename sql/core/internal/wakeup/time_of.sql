-- pgcombine_internal.time_of(id) → timestamptz
-- Returns the last recorded time before the end of a transaction (see tick). So what the transaction wrote became
-- visible after this time. Where a worker or a monitor runs, the time is exact to about a second, and for an old id to
-- about a thousandth of its age. For an id that is older than all recorded times, the result is the first of these
-- times, or the server's start if no time is recorded. For an id that no transaction has had yet, the result is the
-- present time. For null it is null.
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
