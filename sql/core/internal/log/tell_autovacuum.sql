-- pgcombine_internal.tell_autovacuum(queue, segment)
-- Analyzes a segment, so that the statistics have the number of its dead rows. A crash resets the statistics, and
-- without them autovacuum would leave the segment alone. The function does nothing if the table isn't a segment of the
-- queue, or if the function's owner lacks the privileges of the segment's owner.
-- Runs with its owner's rights, for workers.
-- Errors: 55P03 another session has locked the segment; 42501 the caller lacks the right work.
create or replace function pgcombine_internal.tell_autovacuum(queue text, segment regclass)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '20ms'
as $$
begin
    perform pgcombine_internal.require_right(null, 'work', pgcombine_internal.caller());
    if exists (
        select from pgcombine.queue q
        cross join generate_series(0, q.partitions - 1) p
        join pg_class c on c.oid = tell_autovacuum.segment and pg_has_role(c.relowner, 'usage')
        where q.queue = tell_autovacuum.queue
          and c.oid in (select to_regclass(s) from unnest(pgcombine_internal.segment_tables(q.queue, p)) s))
    then
        -- only this column, so that no code of a key's type runs
        execute format('analyze %s (pgcombine_tx)', tell_autovacuum.segment);
    end if;
end
$$;
