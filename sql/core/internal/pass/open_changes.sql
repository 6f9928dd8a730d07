-- pgcombine_internal.open_changes(plan [, source]) → refcursor
-- Opens the cursor pgcombine_changes over the changes of a planned pass. The first fetch runs the pass. The server
-- keeps the changes until the cursor is closed, on disk if they are many.
-- Columns: updates, keys, changes and the number of held updates, alike in each row (and the only row if nothing
-- changed); then the columns of the relation changes.
--   source  see plan_sql
create or replace function pgcombine_internal.open_changes(plan pgcombine.plan, source text default null)
returns refcursor
language plpgsql
as $$
declare
    _changes refcursor := 'pgcombine_changes';
begin
    open _changes no scroll for execute pgcombine_internal.plan_sql(open_changes.plan, ', c.* from (select) as one left join changes c on true',
        open_changes.source);
    return _changes;
end
$$;
