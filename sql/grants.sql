-- Every role can read the catalog, as it can PostgreSQL's own. The queues' tables are granted one by one: see
-- grant_enqueue and its like.
grant usage on schema pgcombine, pgcombine_internal to public;
-- No other role makes triggers of these, and no column of a row type or an enum, which could then not change any more.
-- What a role makes of functions stops no upgrade (see queries/set_aside.sql).
revoke execute on function pgcombine_internal.make_attached(), pgcombine_internal.refuse_backlog(),
    pgcombine_internal.refuse_exported(), pgcombine_internal.wake() from public;
do $$
declare
    _type regtype;
begin
    for _type in
        select t.oid
        from pg_type t left join pg_class c on c.oid = t.typrelid
        where t.typnamespace in ('pgcombine'::regnamespace, 'pgcombine_internal'::regnamespace)
          and t.typtype in ('c', 'e') and t.typacl is null -- a search makes temporary tables with domains
    loop
        execute format('revoke usage on type %s from public', _type);
    end loop;
end
$$;
grant select on pgcombine.queue, pgcombine.queue_column, pgcombine.bucket, pgcombine.combiner, pgcombine.observer, pgcombine.attachment to public;
-- These views show each reader only the rows that it may see.
grant select on pgcombine.status, pgcombine.quarantine, pgcombine.export_status to public;
grant select on pgcombine.queue_stat, pgcombine.bucket_stat, pgcombine.minute_stat, pgcombine.pass_recent, pgcombine.export_stat, pgcombine.hint_stat,
    pgcombine.load_stat, pgcombine.oldest_snapshot, pgcombine.segment_stat, pgcombine.table_size to public;

-- Passes, operators and export workers also write to tables that all queues share. Policies restrict them to the rows of
-- their queues. A role that may insert into, update or delete from a whole table may lock it, so these privileges are on
-- columns, and rows are not deleted but marked for delete_marked. A claim locks rows, which takes the right to update.
-- Whoever reads rows of all queues reads those of roles that aren't trusted, too. So times, marks and documents are
-- checked: none is written that stops such a reader.
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
create policy written on pgcombine.pass for insert
    with check (pgcombine_internal.has_right(queue, 'work') and pgcombine_internal.representable(began)
                and txid_snapshot_xmax(mark) <= txid_snapshot_xmax(txid_current_snapshot())); -- no mark sees the future
grant select, insert (queue, bucket, page, due, sqlstate, error, failed_at, failed_page),
    update (page, due, sqlstate, error, failed_at, failed_page) on pgcombine.retention to public;
drop policy if exists seen on pgcombine.retention;
create policy seen on pgcombine.retention for select using (pgcombine_internal.has_right(queue, 'explain'));
drop policy if exists begun on pgcombine.retention;
create policy begun on pgcombine.retention for insert with check (pgcombine_internal.has_right(queue, 'work'));
drop policy if exists went_on on pgcombine.retention;
create policy went_on on pgcombine.retention for update using (pgcombine_internal.has_right(queue, 'work'));
grant select on pgcombine.lineage, pgcombine.restoring to public;
grant select, insert (queue, bucket, attempts, sqlstate, error, since, last, retry_at, pass_limit, page),
    update (attempts, sqlstate, error, last, retry_at, pass_limit, page) on pgcombine.failure to public;
drop policy if exists seen on pgcombine.failure;
create policy seen on pgcombine.failure for select using (pgcombine_internal.has_right(queue, 'explain'));
drop policy if exists noted on pgcombine.failure;
create policy noted on pgcombine.failure for insert
    with check (pgcombine_internal.has_right(queue, 'work') and pgcombine_internal.representable(since, last, retry_at));
drop policy if exists repeated on pgcombine.failure;
create policy repeated on pgcombine.failure for update using (pgcombine_internal.has_right(queue, 'work'))
    with check (pgcombine_internal.has_right(queue, 'work') and pgcombine_internal.representable(since, last, retry_at));
-- every role may see that keys are quarantined, but not which
grant select (queue, id, updates), insert (queue, key, updates, attempts, sqlstate, error), update (updates)
    on pgcombine.quarantined_key to public;
drop policy if exists seen on pgcombine.quarantined_key;
create policy seen on pgcombine.quarantined_key for select using (true);
drop policy if exists held on pgcombine.quarantined_key;
create policy held on pgcombine.quarantined_key for insert
    with check (pgcombine_internal.has_right(queue, 'work') and pgcombine_internal.shallow(key));
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
create policy claimed on pgcombine.export_bucket using (pgcombine_internal.has_right(export, 'deliver'))
    with check (pgcombine_internal.has_right(export, 'deliver') and pgcombine_internal.representable(delivered_at));
grant select, insert (export, seq, entry, error), update (error, since) on pgcombine.export_quarantine to public;
drop policy if exists seen on pgcombine.export_quarantine;
create policy seen on pgcombine.export_quarantine for select
    using (pgcombine_internal.has_right(export, 'deliver') or pgcombine_internal.may_operate_export(export));
drop policy if exists refused on pgcombine.export_quarantine;
create policy refused on pgcombine.export_quarantine for insert
    with check (pgcombine_internal.has_right(export, 'deliver') and pgcombine_internal.shallow(entry));
drop policy if exists refused_again on pgcombine.export_quarantine;
create policy refused_again on pgcombine.export_quarantine for update
    using (pgcombine_internal.has_right(export, 'deliver') or pgcombine_internal.may_operate_export(export))
    with check ((pgcombine_internal.has_right(export, 'deliver') or pgcombine_internal.may_operate_export(export))
                and (since = '-infinity' or pgcombine_internal.representable(since))); -- see delete_marked
grant select, update (state, ticket, failures, retry_at, reason, since) on pgcombine.destination_state to public;
drop policy if exists seen on pgcombine.destination_state;
create policy seen on pgcombine.destination_state for select
    using (kind = 'export' and (pgcombine_internal.has_right(name, 'deliver') or pgcombine_internal.may_operate_export(name)));
drop policy if exists resumed on pgcombine.destination_state;
create policy resumed on pgcombine.destination_state for update using (kind = 'export' and pgcombine_internal.may_operate_export(name))
    with check (kind = 'export' and pgcombine_internal.may_operate_export(name) and pgcombine_internal.representable(retry_at, since));
grant select on pgcombine.worker to public;
grant select on pgcombine.schema_version, pgcombine.repeatable to public;
-- for time_of, which dates pending updates
grant select on pgcombine.tick to public;

-- A table is attached by its owner. A right to write to its queue is needed as well.
grant insert (queue, source, alias, mapping, columns, reads, path) on pgcombine.attachment to public;
drop policy if exists seen on pgcombine.attachment;
create policy seen on pgcombine.attachment for select using (true);
drop policy if exists kept on pgcombine.attachment;
create policy kept on pgcombine.attachment for insert
    with check (pgcombine_internal.has_right(queue, 'enqueue')
                and pgcombine_internal.acts_for((select pg_get_userbyid(c.relowner) from pg_class c where c.oid = source and c.relkind in ('r', 'p', 'f'))));

-- Spark's loads and the ids of runs belong to the role that made them: other roles neither see them nor lock their rows.
-- Policies check this instead of functions with their owner's rights, since current_user is always right in a policy.
-- The privileges are on columns for the reason given above; remove_load deletes loads.
grant select on pgcombine.spark_load, pgcombine.spark_alive, pgcombine.spark_run, pgcombine.spark_limit to public;
grant insert (load, queue, run_id, kind), update (seen_at, ended_at, attempts, expected) on pgcombine.spark_load to public;
grant insert (queue, role, run_id, updates), update (updates) on pgcombine.spark_run to public;
drop policy if exists seen on pgcombine.spark_load;
create policy seen on pgcombine.spark_load for select using (pgcombine_internal.acts_for(role));
drop policy if exists begun on pgcombine.spark_load;
create policy begun on pgcombine.spark_load for insert
    with check (role = current_user and pgcombine_internal.may_load()
                and pgcombine_internal.has_right(queue, case kind when 'values' then 'initialize' else 'enqueue' end));
drop policy if exists changed on pgcombine.spark_load;
create policy changed on pgcombine.spark_load for update
    using (pgcombine_internal.acts_for(role)) with check (pgcombine_internal.acts_for(role) and seen_at <= now() and pgcombine_internal.representable(seen_at, ended_at));
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
