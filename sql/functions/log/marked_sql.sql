-- pgcombine.marked_sql(queue, mask, marks [, new]) → text
-- The condition that an update isn't combined by the marks of its bucket (see bucket_marks), and that a pass with the mark
-- new takes it.
create or replace function pgcombine.marked_sql(queue text, mask bigint, marks txid_snapshot[], new txid_snapshot default null)
returns text
language sql stable
as $$
    select case mask when 0 then pgcombine.unseen_sql(marks[1], new)
        else format('%s and not txid_visible_in_snapshot(pgcombine_tx, (%L::txid_snapshot[])[1 + (%s & %s)])',
            pgcombine.unseen_sql(pgcombine.oldest_mark(marks), new), marks, pgcombine.key_hash(queue), mask) end
$$;
-- pgcombine.oldest_mark(marks) → txid_snapshot
-- What the first of these marks, each of a later pass than another, doesn't see none of them sees for sure.
create or replace function pgcombine.oldest_mark(marks txid_snapshot[])
returns txid_snapshot
language sql immutable
as $$
    select m from unnest(marks) m order by txid_snapshot_xmax(m), txid_snapshot_xmin(m) limit 1
$$;
