-- pgcombine.time_of(id) → timestamptz
-- The last moment at which it is known that no transaction had this id yet: a tick (see tick), a pass, or a checkpoint.
create or replace function pgcombine.time_of(id bigint)
returns timestamptz
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select max(known.at)
    from (select t.at from pgcombine.tick t where t.next_id <= time_of.id
          union all
          select c.checkpoint_time from pg_control_checkpoint() c
          where not pg_is_in_recovery()
            and split_part(c.next_xid, ':', 1)::bigint << 32 | split_part(c.next_xid, ':', 2)::bigint <= time_of.id) as known
$$;
