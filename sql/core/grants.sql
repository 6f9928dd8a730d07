-- Every role can read the tables that describe queues, as every role can read PostgreSQL's catalog. grant_right grants
-- privileges on the tables of single queues. The file grants.sql of another component has the privileges that the
-- component adds.
grant usage on schema pgcombine, pgcombine_internal to public;
-- The next two statements keep other roles from using these trigger functions on their own tables, and from making
-- columns of pgcombine's row types and enums: an upgrade couldn't change a type that such a column has.
revoke execute on function pgcombine_internal.refuse_backlog(), pgcombine_internal.wake() from public;
do $$
declare
    _type regtype;
begin
    for _type in
        select t.oid
        from pg_type t left join pg_class c on c.oid = t.typrelid
        where t.typnamespace in ('pgcombine'::regnamespace, 'pgcombine_internal'::regnamespace)
          and t.typtype in ('c', 'e') and t.typacl is null -- not domains: searches for failing keys use them
    loop
        execute format('revoke usage on type %s from public', _type);
    end loop;
end
$$;
grant select on pgcombine.queue, pgcombine.queue_column, pgcombine.bucket, pgcombine.combiner, pgcombine.observer,
    pgcombine.hook, pgcombine.right_kind, pgcombine.right_privilege, pgcombine.component_table to public;
-- Views with rows of single queues show a reader only those of the queues on which it has a right. The view rights
-- shows all rows to every role.
grant select on pgcombine.status, pgcombine.quarantine, pgcombine.queue_stat, pgcombine.bucket_stat,
    pgcombine.minute_stat, pgcombine.rights,
    pgcombine.pass_recent, pgcombine.oldest_snapshot, pgcombine.segment_stat, pgcombine.table_size to public;

-- Passes and operators also write to tables that all queues share. Policies restrict them to the rows of their queues.
-- A role with the privilege to insert into, update or delete from a whole table could lock it. So these privileges are
-- on columns, and roles mark rows for delete_flagged instead of deleting them. Programs that read the rows of all
-- queues, such as monitors, also read rows that untrusted roles wrote. So policies refuse times, marks and keys that
-- such a program couldn't read.
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
    using (pgcombine_internal.has_right(queue, 'work') or pgcombine_internal.has_right(queue, 'operate'))
    with check (false);
grant select, insert (queue, bucket, pass, mark, range_mask, hash_range, began, updates, keys, changes, inserted)
    on pgcombine.pass to public;
drop policy if exists seen on pgcombine.pass;
create policy seen on pgcombine.pass for select using (pgcombine_internal.has_right(queue, 'use'));
drop policy if exists written on pgcombine.pass;
create policy written on pgcombine.pass for insert
    with check (pgcombine_internal.has_right(queue, 'work') and pgcombine_internal.representable(began)
                and txid_snapshot_xmax(mark) <= txid_snapshot_xmax(txid_current_snapshot())); -- refuses future ids
grant select, insert (queue, bucket, page, due, sqlstate, error, failed_at, failed_page),
    update (page, due, sqlstate, error, failed_at, failed_page) on pgcombine.expiry to public;
drop policy if exists seen on pgcombine.expiry;
create policy seen on pgcombine.expiry for select using (pgcombine_internal.has_right(queue, 'explain'));
drop policy if exists begun on pgcombine.expiry;
create policy begun on pgcombine.expiry for insert
    with check (pgcombine_internal.has_right(queue, 'work') and pgcombine_internal.representable(failed_at));
drop policy if exists went_on on pgcombine.expiry;
create policy went_on on pgcombine.expiry for update using (pgcombine_internal.has_right(queue, 'work'))
    with check (pgcombine_internal.has_right(queue, 'work') and pgcombine_internal.representable(failed_at));
grant select on pgcombine.cluster_identity, pgcombine.restoring to public;
grant select, insert (queue, bucket, attempts, sqlstate, error, since, last, retry_at, pass_limit, page),
    update (attempts, sqlstate, error, last, retry_at, pass_limit, page) on pgcombine.failure to public;
drop policy if exists seen on pgcombine.failure;
create policy seen on pgcombine.failure for select using (pgcombine_internal.has_right(queue, 'explain'));
drop policy if exists noted on pgcombine.failure;
create policy noted on pgcombine.failure for insert
    with check (pgcombine_internal.has_right(queue, 'work')
                and pgcombine_internal.representable(since, last, retry_at));
drop policy if exists repeated on pgcombine.failure;
create policy repeated on pgcombine.failure for update using (pgcombine_internal.has_right(queue, 'work'))
    with check (pgcombine_internal.has_right(queue, 'work')
                and pgcombine_internal.representable(since, last, retry_at));
-- Every role can read how many keys are quarantined, but not the keys. The policy for inserts refuses a JSON key of
-- more than 500 levels, since Python can't parse very deep JSON.
grant select (queue, id, updates), insert (queue, key, updates, attempts, sqlstate, error), update (updates)
    on pgcombine.quarantined_key to public;
drop policy if exists seen on pgcombine.quarantined_key;
create policy seen on pgcombine.quarantined_key for select using (true);
drop policy if exists quarantined on pgcombine.quarantined_key;
create policy quarantined on pgcombine.quarantined_key for insert
    with check (pgcombine_internal.has_right(queue, 'work') and not jsonb_path_exists(key, 'strict $.**{501}'));
drop policy if exists counted on pgcombine.quarantined_key;
create policy counted on pgcombine.quarantined_key for update
    using (pgcombine_internal.has_right(queue, 'work') or pgcombine_internal.has_right(queue, 'operate'));
grant select on pgcombine.worker to public;
grant select on pgcombine.schema_version to public;
-- Roles insert tokens, but can't read them. Components add policies for the tokens of single roles. This policy repeats
-- has_right's condition for enqueue, since a call of has_right would make each enqueue_once slower.
grant insert (queue, role, token) on pgcombine.token to public;
drop policy if exists shared on pgcombine.token;
create policy shared on pgcombine.token for insert
    with check (role = ''
                and (has_any_column_privilege(to_regclass(format('pgcombine.%I', queue || '_updates')),
                         'insert') is true
                     or pgcombine_internal.require_right(queue, 'enqueue') is not null)); -- raises, with a hint
-- for time_of, which dates pending updates
grant select on pgcombine.tick to public;
