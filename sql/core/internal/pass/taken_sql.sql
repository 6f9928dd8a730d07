-- pgcombine_internal.taken_sql(queue, bucket, segment) → text
-- Returns the condition that selects the updates which a pass takes in a segment: the new mark sees them, and their
-- key's mark doesn't. pass_template explains the parameters. PostgreSQL evaluates ($7)[…] once, before it scans the
-- segment. So the statement names all segments, and a pass scans only those that may hold pending updates. PostgreSQL
-- also evaluates once the lowest id that may be pending. "is not true" keeps the planner from expecting few rows.
-- bucket_log has the same condition for one read. Here the marks are parameters, so that a plan outlives a pass.
--   segment  the number of the segment, from 0
create or replace function pgcombine_internal.taken_sql(queue text, bucket text, segment integer)
returns text
language sql stable
as $$
    select concat_ws(' and ', format('($7)[%s]', segment + 1),
        '(pgcombine_tx < (select min(txid_snapshot_xmin(m)) from unnest($4) m)) is not true
      and txid_visible_in_snapshot(pgcombine_tx, $6)',
        format('not txid_visible_in_snapshot(pgcombine_tx, ($4)[case when $5 = 0 then 1 else 1 + (%s & $5) end])
      and ($8 = 0 or %s & $8 = $9)', h.hash, h.hash),
        nullif(pgcombine_internal.bucket_condition(queue, bucket), ''))
    from pgcombine_internal.key_hash(queue) h (hash)
$$;
