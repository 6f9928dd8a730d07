-- pgcombine_internal.refuse_lineage() trigger, before update or delete, statement level, on pgcombine.lineage
-- Refuses to change the lineage of a database that gave the stored ids. Sessions remember it by the file in which it is
-- (see wake). TRUNCATE begins another file. The primary key refuses further rows.
-- Errors: PC012 the database isn't a copy.
create or replace function pgcombine_internal.refuse_lineage()
returns trigger
language plpgsql
as $$
begin
    perform pgcombine_internal.require(not pgcombine_internal.own_lineage(), 'PC012',
        format('the lineage of database "%s" doesn''t change', current_database()),
        'before data alone is restored: truncate pgcombine.lineage');
    return null;
end
$$;
create or replace trigger pgcombine_lineage before update or delete on pgcombine.lineage
    for each statement execute function pgcombine_internal.refuse_lineage();
