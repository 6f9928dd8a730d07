-- pgcombine.open_changes(queue, bucket, condition, packed, pending) → refcursor
-- Opens the cursor pgcombine_changes over the changes of the pass that begin_pass prepared: updates, keys, changes
-- (the same in each row; the only row if nothing changed), then the columns of the relation changes. The first fetch
-- runs the pass; the server keeps the changes, on disk if they are many, until the cursor is closed.
--   condition, packed, pending  as begin_pass returned them
create or replace function pgcombine.open_changes(queue text, bucket integer, condition text, packed boolean, pending bigint)
returns refcursor
language plpgsql
as $$
declare
    _changes refcursor := 'pgcombine_changes';
begin
    open _changes no scroll for execute pgcombine.combine_sql(open_changes.queue, open_changes.bucket, open_changes.condition,
        ', c.* from (select) as one left join changes c on true', open_changes.packed, coalesce(open_changes.pending, 0) < 1000);
    return _changes;
end
$$;
