-- pgcombine_internal.time_of(id) → timestamptz
-- Returns when the transaction with this id began to write, to about a second: the first recorded time at which the id
-- had been given. The times are those of pgcombine.tick and of the last checkpoint. Null: the id was given after the
-- last of them.
create or replace function pgcombine_internal.time_of(id bigint)
returns timestamptz
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select min(known.at)
    from ((select t.at from pgcombine.tick t where t.next_id > time_of.id order by t.next_id, t.at limit 1)
          union all
          select c.checkpoint_time from pg_control_checkpoint() c
          where not pg_is_in_recovery()
            and (split_part(c.next_xid, ':', 1)::bigint << 32 | split_part(c.next_xid, ':', 2)::bigint) > time_of.id) as known
$$;
