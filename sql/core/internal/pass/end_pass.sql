-- pgcombine_internal.end_pass(plan, updates, keys, changes)
-- Writes a pass to the journal: from now on its mark says which updates are combined. A pass that took nothing writes
-- nothing, but for uncounted buckets. If the queue's keys aren't portable (see portable_keys), the updates taken are deleted.
-- Tables written: pass; <queue>_updates, if keys aren't portable; failure, if the bucket's last pass failed and this
-- one took all.
-- Errors: 40001 a rival pass over the bucket has committed since this pass's snapshot; run the pass again.
create or replace function pgcombine_internal.end_pass(plan pgcombine.plan, updates bigint, keys bigint, changes bigint)
returns void
language plpgsql
as $$
declare
    _plan constant pgcombine.plan := end_pass.plan;
    _table text;
begin
    if end_pass.updates > 0 or (end_pass.plan).mask > 0 or pgcombine_internal.uncounted(_plan.queue, _plan.bucket) then
        insert into pgcombine.pass (queue, bucket, pass, mark, mask, slice, began, updates, keys, changes, inserted)
        select p.queue, p.bucket, p.pass, p.mark, nullif(p.mask, 0), case when p.mask > 0 then p.slice end, p.began,
               end_pass.updates, end_pass.keys, end_pass.changes,
               case when q.max_backlog is null then null
                    when p.mask > 0 then (select o.inserted from pgcombine.pass o
                                           where (o.queue, o.bucket, o.pass) = (p.queue, p.bucket, p.pass - 1) and o.began > pgcombine_internal.counted_since())
                                         + end_pass.updates * (q.buckets / q.partitions)
                    else pgcombine_internal.inserted(p.queue, p.bucket) end
        from (select (end_pass.plan).*) p join pgcombine.queue q using (queue)
        on conflict (queue, bucket, pass) do nothing;
        if not found then
            raise serialization_failure using message = format('another pass over bucket %s of queue "%s" has committed meanwhile', _plan.bucket, _plan.queue),
                hint = 'run the pass again';
        end if;
        if not pgcombine_internal.portable_keys(_plan.queue) then
            foreach _table in array _plan.tables loop
                execute format('delete from %s where %s%s', _table, _plan.condition,
                    case when _plan.mask > 0 then format(' and %s & %s = %s', pgcombine_internal.key_hash(_plan.queue), _plan.mask, _plan.slice) end);
            end loop;
        end if;
    end if;
    if not _plan.more then
        perform pgcombine_internal.forget_failure(_plan.queue, _plan.bucket);
    else -- see fail_pass
        update pgcombine.failure f
        set pass_limit = nullif(least(2 * greatest(f.pass_limit, 1), q.pass_limit), q.pass_limit)
        from pgcombine.queue q
        where (f.queue, f.bucket) = (_plan.queue, _plan.bucket) and q.queue = f.queue and f.pass_limit is not null;
    end if;
end
$$;
