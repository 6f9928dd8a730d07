-- pgcombine_internal.keep_deletions(queue)
-- Adds a deletion of each key that has a value to a queue's changes, before truncate_queue removes the values. It runs
-- the statements by which passes write changes (see keep_changes).
-- The caller has claimed all buckets of the queue.
-- Tables written: <queue>_changes, change_bucket.
create or replace function pgcombine_internal.keep_deletions(queue text)
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _queue pgcombine.queue := pgcombine_internal.require_queue(keep_deletions.queue);
begin
    select pgcombine_internal.fill('with changes as (select {keys}, {olds}, {news} from {values} '
            'where num_nonnulls({columns}) > 0{and}), pgcombine_kept as ({changes}) {sequence}', jsonb_build_object(
            'keys', pgcombine_internal.column_list(_queue.queue, 'key'),
            'columns', pgcombine_internal.column_list(_queue.queue, 'value'),
            'olds', pgcombine_internal.column_list(_queue.queue, 'value', '{name} as {old}'),
            'news', pgcombine_internal.column_list(_queue.queue, 'value', 'null::{type} as {new}'),
            'values', 'pgcombine.' || _queue.queue || '_values_b{pgcombine_partition}',
            'and', ' and ' || nullif(pgcombine_internal.bucket_condition(_queue.queue, '{pgcombine_bucket}'), ''),
            'changes', min(o.statement) filter (where o.observer = 'changes'),
            'sequence', min(o.statement) filter (where o.observer = 'changes sequence')))
    into _queue.statement
    from pgcombine.observer o where o.queue = _queue.queue;
    for _bucket in 0 .. _queue.buckets - 1 loop
        execute pgcombine_internal.pass_sql(_queue, _bucket);
    end loop;
end
$$;
