-- Every role can read the catalog, as it can PostgreSQL's own. The queues' tables are granted one by one: see
-- grant_enqueue and its like.
grant usage on schema pgcombine, pgcombine_internal to public;
grant select on pgcombine.queue, pgcombine.queue_column, pgcombine.bucket, pgcombine.combiner, pgcombine.observer, pgcombine.attachment to public;
-- These views show each reader only the rows that it may see.
grant select on pgcombine.status, pgcombine.quarantine, pgcombine.export_status to public;
grant select on pgcombine.queue_stat, pgcombine.bucket_stat, pgcombine.minute_stat, pgcombine.pass_recent, pgcombine.export_stat, pgcombine.hint_stat,
    pgcombine.load_stat, pgcombine.oldest_snapshot, pgcombine.segment_stat, pgcombine.table_size to public;

-- Passes, operators and export workers also write to tables that all queues share. Policies restrict them to the rows of
-- their queues. A role that may insert into, update or delete from a whole table may lock it, so these privileges are on
-- columns, and rows are not deleted but marked for delete_marked. A claim locks rows, which takes the right to update.
grant update (paused) on pgcombine.queue to public;
drop policy if exists seen on pgcombine.queue;
create policy seen on pgcombine.queue for select using (true);
drop policy if exists paused on pgcombine.queue;
create policy paused on pgcombine.queue for update using (pgcombine_internal.has_right(queue, 'operate'));
grant update (bucket) on pgcombine.bucket to public; -- for the claim's lock; the policy permits no change
drop policy if exists seen on pgcombine.bucket;
create policy seen on pgcombine.bucket for select using (true);
drop policy if exists claimed on pgcombine.bucket;
create policy claimed on pgcombine.bucket for update
    using (pgcombine_internal.has_right(queue, 'work') or pgcombine_internal.has_right(queue, 'operate')) with check (false);
grant select, insert (queue, bucket, pass, mark, mask, slice, began, updates, keys, changes, inserted) on pgcombine.pass to public;
drop policy if exists seen on pgcombine.pass;
create policy seen on pgcombine.pass for select using (pgcombine_internal.has_right(queue, 'use'));
drop policy if exists written on pgcombine.pass;
create policy written on pgcombine.pass for insert with check (pgcombine_internal.has_right(queue, 'work'));
grant select, insert (queue, bucket, page, due, sqlstate, error, failed_at, failed_page),
    update (page, due, sqlstate, error, failed_at, failed_page) on pgcombine.retention to public;
drop policy if exists seen on pgcombine.retention;
create policy seen on pgcombine.retention for select using (pgcombine_internal.has_right(queue, 'watch'));
drop policy if exists begun on pgcombine.retention;
create policy begun on pgcombine.retention for insert with check (pgcombine_internal.has_right(queue, 'work'));
drop policy if exists went_on on pgcombine.retention;
create policy went_on on pgcombine.retention for update using (pgcombine_internal.has_right(queue, 'work'));
grant select on pgcombine.lineage to public;
grant select, insert (queue, bucket, attempts, sqlstate, error, since, last, retry_at, slow),
    update (attempts, sqlstate, error, last, retry_at, slow, tx) on pgcombine.failure to public;
drop policy if exists seen on pgcombine.failure;
create policy seen on pgcombine.failure for select using (pgcombine_internal.has_right(queue, 'watch'));
drop policy if exists noted on pgcombine.failure;
create policy noted on pgcombine.failure for insert with check (pgcombine_internal.has_right(queue, 'work'));
drop policy if exists repeated on pgcombine.failure;
create policy repeated on pgcombine.failure for update using (pgcombine_internal.has_right(queue, 'work'));
-- every role may see that keys are quarantined, but not which
grant select (queue, id, updates), insert (queue, key, updates, attempts, sqlstate, error), update (updates)
    on pgcombine.quarantined_key to public;
drop policy if exists seen on pgcombine.quarantined_key;
create policy seen on pgcombine.quarantined_key for select using (true);
drop policy if exists held on pgcombine.quarantined_key;
create policy held on pgcombine.quarantined_key for insert with check (pgcombine_internal.has_right(queue, 'work'));
drop policy if exists counted on pgcombine.quarantined_key;
create policy counted on pgcombine.quarantined_key for update
    using (pgcombine_internal.has_right(queue, 'work') or pgcombine_internal.has_right(queue, 'operate'));
grant select, update (sweep) on pgcombine.export to public;
drop policy if exists seen on pgcombine.export;
create policy seen on pgcombine.export for select
    using (pgcombine_internal.has_right(export, 'deliver') or pgcombine_internal.has_right(queue, 'use'));
drop policy if exists swept on pgcombine.export;
create policy swept on pgcombine.export for update using (pgcombine_internal.has_right(export, 'deliver'));
grant select, update (delivered, delivered_at) on pgcombine.export_bucket to public;
drop policy if exists claimed on pgcombine.export_bucket;
create policy claimed on pgcombine.export_bucket using (pgcombine_internal.has_right(export, 'deliver'));
grant select, insert (export, seq, entry, error), update (error, since) on pgcombine.export_quarantine to public;
drop policy if exists seen on pgcombine.export_quarantine;
create policy seen on pgcombine.export_quarantine for select
    using (pgcombine_internal.has_right(export, 'deliver') or pgcombine_internal.may_operate_export(export));
drop policy if exists refused on pgcombine.export_quarantine;
create policy refused on pgcombine.export_quarantine for insert with check (pgcombine_internal.has_right(export, 'deliver'));
drop policy if exists refused_again on pgcombine.export_quarantine;
create policy refused_again on pgcombine.export_quarantine for update
    using (pgcombine_internal.has_right(export, 'deliver') or pgcombine_internal.may_operate_export(export));
grant select, update (state, ticket, failures, retry_at, reason, since) on pgcombine.destination_state to public;
drop policy if exists seen on pgcombine.destination_state;
create policy seen on pgcombine.destination_state for select
    using (kind = 'export' and (pgcombine_internal.has_right(name, 'deliver') or pgcombine_internal.may_operate_export(name)));
drop policy if exists resumed on pgcombine.destination_state;
create policy resumed on pgcombine.destination_state for update using (kind = 'export' and pgcombine_internal.may_operate_export(name));
grant select on pgcombine.worker to public;
grant select on pgcombine.schema_version, pgcombine.repeatable to public;
-- for time_of, which dates pending updates
grant select on pgcombine.tick to public;

-- Spark's loads and the ids of runs belong to the role that made them: other roles neither see them nor lock their rows.
-- Policies check this instead of functions with their owner's rights, since current_user is always right in a policy.
-- The privileges are on columns for the reason given above; remove_load deletes loads.
grant select on pgcombine.spark_load, pgcombine.spark_alive, pgcombine.spark_run, pgcombine.spark_limit to public;
grant insert (load, queue, run_id, kind), update (seen_at, ended_at, attempts, expected) on pgcombine.spark_load to public;
grant insert (load, part) on pgcombine.spark_part to public;
grant insert (queue, role, run_id, updates), update (updates) on pgcombine.spark_run to public;
drop policy if exists seen on pgcombine.spark_load;
create policy seen on pgcombine.spark_load for select using (pgcombine_internal.acts_for(role));
drop policy if exists begun on pgcombine.spark_load;
create policy begun on pgcombine.spark_load for insert
    with check (role = current_user and pgcombine_internal.may_load()
                and pgcombine_internal.has_right(queue, case kind when 'values' then 'initialize' else 'enqueue' end));
drop policy if exists changed on pgcombine.spark_load;
create policy changed on pgcombine.spark_load for update
    using (pgcombine_internal.acts_for(role)) with check (pgcombine_internal.acts_for(role) and seen_at <= now());
drop policy if exists written on pgcombine.spark_part;
create policy written on pgcombine.spark_part for insert
    with check (exists (select from pgcombine.spark_load l where l.load = spark_part.load and l.ended_at is null));
drop policy if exists seen on pgcombine.spark_alive;
create policy seen on pgcombine.spark_alive for select
    using (exists (select from pgcombine.spark_load l where l.load = spark_alive.load));
drop policy if exists seen on pgcombine.spark_run;
create policy seen on pgcombine.spark_run for select
    using (pgcombine_internal.acts_for(role) or role = '' and pgcombine_internal.has_right(queue, 'load'));
drop policy if exists begun on pgcombine.spark_run;
create policy begun on pgcombine.spark_run for insert
    with check (pgcombine_internal.acts_for(role) and pgcombine_internal.has_right(queue, 'load'));
drop policy if exists changed on pgcombine.spark_run;
create policy changed on pgcombine.spark_run for update using (pgcombine_internal.acts_for(role));
