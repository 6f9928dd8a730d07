-- pgcombine.open_changes(plan [, source]) → refcursor
-- Opens the cursor pgcombine_changes over the changes of a planned pass: updates, keys, changes and how many updates go to
-- the quarantine (the same in each row; the only row if nothing changed), then the columns of the relation changes. The
-- first fetch runs the pass; the server keeps the changes, on disk if they are many, until the cursor is closed.
--   source  as plan_sql takes it
create or replace function pgcombine.open_changes(plan pgcombine.plan, source text default null)
returns refcursor
language plpgsql
as $$
declare
    _changes refcursor := 'pgcombine_changes';
begin
    open _changes no scroll for execute pgcombine.plan_sql(open_changes.plan, ', c.* from (select) as one left join changes c on true',
        open_changes.source);
    return _changes;
end
$$;
