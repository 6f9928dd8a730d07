-- The catalog is readable by everybody, as PostgreSQL's own is; the queues' tables are not:
-- grant insert on pgcombine.<queue>_updates (a writer) or select on <queue>_values (a reader) as usual.
grant usage on schema pgcombine to public;
grant select on pgcombine.queue, pgcombine.queue_column, pgcombine.bucket, pgcombine.combiner, pgcombine.observer, pgcombine.attachment to public;
-- whether a key is quarantined, but not which: <queue>_enqueue asks
grant select (queue) on pgcombine.quarantined_key to public;
-- how many keys are quarantined and how many buckets fail, but not which and why: the view status asks
grant select (queue, updates) on pgcombine.quarantine to public;
grant select (queue) on pgcombine.failure to public;
grant select on pgcombine.worker to public;
grant select on pgcombine.schema_version, pgcombine.repeatable to public;
-- to date pending updates by (see time_of)
grant select on pgcombine.tick to public;

-- Loads from Spark and the ids of runs are the role's that made them: nobody else sees them or locks their rows. These are
-- policies, and not checks in functions with their owner's rights, since current_user is right here whoever calls what.
-- Whoever may insert into, update or delete from a whole table may lock it, so these are privileges on columns; a load is
-- deleted by remove_load.
grant select on pgcombine.spark_load, pgcombine.spark_alive, pgcombine.spark_run, pgcombine.spark_limit to public;
grant insert (load, queue, run_id, kind), update (seen_at, ended_at, attempts, expected) on pgcombine.spark_load to public;
grant insert (load, part) on pgcombine.spark_part to public;
grant insert (queue, role, run_id, updates), update (updates) on pgcombine.spark_run to public;
drop policy if exists seen on pgcombine.spark_load;
create policy seen on pgcombine.spark_load for select using (pgcombine.acts_for(role));
drop policy if exists begun on pgcombine.spark_load;
create policy begun on pgcombine.spark_load for insert
    with check (role = current_user and pgcombine.may_load()
                and pgcombine.has_right(queue, case kind when 'values' then 'initialize' else 'enqueue' end));
drop policy if exists changed on pgcombine.spark_load;
create policy changed on pgcombine.spark_load for update
    using (pgcombine.acts_for(role)) with check (pgcombine.acts_for(role) and seen_at <= now());
drop policy if exists written on pgcombine.spark_part;
create policy written on pgcombine.spark_part for insert
    with check (exists (select from pgcombine.spark_load l where l.load = spark_part.load and l.ended_at is null));
drop policy if exists seen on pgcombine.spark_alive;
create policy seen on pgcombine.spark_alive for select
    using (exists (select from pgcombine.spark_load l where l.load = spark_alive.load));
drop policy if exists seen on pgcombine.spark_run;
create policy seen on pgcombine.spark_run for select
    using (pgcombine.acts_for(role) or role = '' and pgcombine.has_right(queue, 'load'));
drop policy if exists begun on pgcombine.spark_run;
create policy begun on pgcombine.spark_run for insert
    with check (pgcombine.acts_for(role) and pgcombine.has_right(queue, 'load'));
drop policy if exists changed on pgcombine.spark_run;
create policy changed on pgcombine.spark_run for update using (pgcombine.acts_for(role));
