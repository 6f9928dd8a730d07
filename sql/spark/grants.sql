-- Spark's loads and the ids of runs belong to the role that made them. Policies let the members of that role see,
-- lock and change the rows of these tables. This needs no functions with their owner's rights, since in a policy
-- current_user is the role whose statement runs. No role gets delete: the function remove_load deletes loads.
grant select on pgcombine.spark_load, pgcombine.spark_alive, pgcombine.spark_limit,
    pgcombine.load_stat to public;
grant insert (load, queue, run_id, kind),
    update (seen_at, ended_at, attempts, expected) on pgcombine.spark_load to public;
grant select, insert (updates), update (updates) on pgcombine.token to public;
drop policy if exists seen on pgcombine.spark_load;
create policy seen on pgcombine.spark_load for select using (pgcombine_internal.acts_for(role));
drop policy if exists begun on pgcombine.spark_load;
create policy begun on pgcombine.spark_load for insert
    with check (role = current_user and pgcombine_internal.may_load()
                and pgcombine_internal.has_right(queue, case kind when 'values' then 'initialize' else 'enqueue' end));
drop policy if exists changed on pgcombine.spark_load;
create policy changed on pgcombine.spark_load for update
    using (pgcombine_internal.acts_for(role)) with check (pgcombine_internal.acts_for(role) and seen_at <= now()
        and pgcombine_internal.representable(seen_at, ended_at));
drop policy if exists seen on pgcombine.spark_alive;
create policy seen on pgcombine.spark_alive for select
    using (exists (select from pgcombine.spark_load l where l.load = spark_alive.load));
drop policy if exists seen on pgcombine.token;
create policy seen on pgcombine.token for select using (pgcombine_internal.acts_for(role));
drop policy if exists begun on pgcombine.token;
create policy begun on pgcombine.token for insert
    with check (pgcombine_internal.acts_for(role) and pgcombine_internal.has_right(queue, 'load'));
drop policy if exists changed on pgcombine.token;
create policy changed on pgcombine.token for update using (pgcombine_internal.acts_for(role));
