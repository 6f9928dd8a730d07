-- pgcombine_internal.run_pass(queue [, bucket, observers, from_page, range_mask, hash_range, arrived])
--     → (bucket, updates, keys, changes, more, expired, next_page, observe)
-- Claims a bucket, plans a pass over it (see plan_pass) and runs it: combines the pending updates with the values, and
-- writes the new values and, if needed, a journal row (see end_pass), all in the caller's transaction. Returns no row
-- if the bucket is claimed already, if the queue is paused, or if no bucket is given and no unclaimed one has pending
-- updates.
--   bucket     null: a random one of the unclaimed buckets with pending updates
--   observers, from_page, range_mask, hash_range  see plan_pass
--   arrived    whether an observer of the caller reads the folded updates
--   expired    number of expired keys that the pass has removed, except keys whose updates it took
--   next_page  where the scan for expired keys continues (see schedule_expiry). Without a scan: from_page, or null
--              for -1
--   observe    Python observers that the caller must run over the changes before it commits, in this order. The changes
--              are the rows of the cursor pgcombine_changes, which the server stores, on disk if they are many. The
--              last columns of the rows are those of the relation changes. With arrived the folded updates follow (see
--              python_sql)
-- The claim comes first. Under read committed the pass then sees all that was committed before the claim. Under
-- repeatable read the snapshot is older than the claim. If another pass has committed in between, this pass raises
-- 40001, and the caller runs it again.
-- Tables written: <queue>_values; those of end_pass, forget_failure and schedule_expiry; <queue>_quarantine and
-- quarantined_key, if keys are quarantined; those of the observers.
-- Errors: those of claim_bucket and plan_pass; 40001 another pass over the bucket has committed since this pass's
-- snapshot, or the queue's definition changed during the pass; 54000 see refuse_bytes; the errors of combiners and
-- observers.
create or replace function pgcombine_internal.run_pass(queue text, inout bucket integer default null,
    observers text[] default '{}', from_page bigint default null, range_mask bigint default null,
        hash_range bigint default null, arrived boolean default false,
    out updates bigint, out keys bigint, out changes bigint, out more boolean, out expired bigint, out next_page bigint,
    out observe text[])
returns setof record
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _queue pgcombine.queue;
    _plan pgcombine.plan;
    _first tid;
    _end tid;
    _changes refcursor := 'pgcombine_changes';
    _quarantined bigint;
    _schema text;
    _table text;
    _constraint text;
begin
    run_pass.bucket := pgcombine_internal.claim_bucket(run_pass.queue, run_pass.bucket);
    if run_pass.bucket is null then
        return;
    end if;
    _queue := pgcombine_internal.require_queue(run_pass.queue);
    _plan := pgcombine_internal.plan_pass(_queue, run_pass.bucket, run_pass.observers, run_pass.from_page,
        run_pass.range_mask, run_pass.hash_range);
    select 0, 0, 0, 0, 0, _plan.more, '{}' into updates, keys, changes, expired, _quarantined, more, observe;
    begin
        -- if there are neither updates nor pages to scan, the statement would change nothing
        if true = any (_plan.reads) or _plan.first_page is not null then
            if _plan.range_mask >= 4095 then
                perform pgcombine_internal.refuse_bytes(_queue, _plan);
            end if;
            _first := format('(%s,0)', coalesce(_plan.first_page, 0))::tid;
            _end := format('(%s,0)', coalesce(_plan.first_page + 1024, 0))::tid;
            if _queue.pass -> 'python' <> '[]' then
                open _changes no scroll for execute pgcombine_internal.pass_sql(_queue, run_pass.bucket)
                        || pgcombine_internal.python_sql(_queue, run_pass.arrived)
                    using _plan.has_quarantined, _first, _end, _plan.marks, _plan.marks_mask, _plan.mark, _plan.reads,
                        _plan.range_mask, _plan.hash_range;
                -- runs the pass; the first row has only the counts
                fetch _changes into updates, keys, changes, _quarantined, expired;
                if changes > 0 or arrived and keys > 0 then
                    observe := array(select jsonb_array_elements_text(_queue.pass -> 'python'));
                else
                    close _changes;
                end if;
            else
                execute format('execute %I (%L, %L, %L, %L, %L, %L, %L, %L, %L)',
                    pgcombine_internal.prepare_pass(_queue, run_pass.bucket),
                    _plan.has_quarantined, _first, _end, _plan.marks, _plan.marks_mask, _plan.mark, _plan.reads,
                        _plan.range_mask, _plan.hash_range)
                into updates, keys, changes, _quarantined, expired;
            end if;
        end if;
        updates := updates + _quarantined;
        perform pgcombine_internal.end_pass(_queue, _plan, updates, keys, changes);
    exception when unique_violation then
        get stacked diagnostics _schema = schema_name, _table = table_name, _constraint = constraint_name;
        if exists (
            select from pg_constraint c
            where c.contype = 'p' and c.conname = _constraint
              and c.conrelid = to_regclass(format('%I.%I', _schema, _table))
              and c.conrelid in ('pgcombine.pass'::regclass, to_regclass(
                  pgcombine_internal.values_table(_queue.queue, _plan.bucket % _queue.partitions))))
        then
            raise serialization_failure using hint = 'run the pass again', message = format(
                'another pass over bucket %s of queue "%s" has committed meanwhile', _plan.bucket, _plan.queue);
        end if;
        raise;
    end;
    perform pgcombine_internal.forget_failure(_queue, _plan);
    next_page := case when _plan.first_page is null then nullif(from_page, -1) else
        -- after 10000 keys, the limit of a pass, the next pass scans the same pages; after a pass that took updates,
        -- the scan pauses for as long as the pass has run
        pgcombine_internal.schedule_expiry(_queue.queue, _plan.bucket, _plan.first_page,
            _plan.first_page + case when expired < 10000 then 1024 else 0 end,
            case when updates > 0 then clock_timestamp() - _plan.began else interval '0 s' end) end;
    if current_setting('transaction_isolation') not in ('repeatable read', 'serializable')
       and (pgcombine_internal.require_queue(_queue.queue)).pass is distinct from _queue.pass
    then
        raise serialization_failure using hint = 'run the pass again',
            message = format('observers or conditions of queue "%s" changed during the pass', _queue.queue);
    end if;
    return next;
end
$$;
