-- pgcombine.time_of(transactions) → timestamptz
-- When the transaction began to write that is so many transactions old (age(xmin)), to about a second; null if
-- that can't be told yet, which means: after the last moment that was noted.
-- A column with the time would cost each enqueue 8 bytes of log and table; this costs them nothing. A row of tick
-- is a transaction of which the time is known: what is older than it began before. So is the last checkpoint.
-- No transaction number is stored, only rows that bear theirs: a dump restored elsewhere has new ones, all the
-- same, and stands for the latest moment in it.
create or replace function pgcombine.time_of(transactions integer)
returns timestamptz
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select min(known.at)
    from (select max(t.at) as at, age(t.xmin) as age from pgcombine.tick t group by age(t.xmin)
          union all
          select c.checkpoint_time, age(split_part(c.next_xid, ':', 2)::xid) from pg_control_checkpoint() c
          where not pg_is_in_recovery()) as known
    where known.age between 0 and time_of.transactions - 1
$$;
