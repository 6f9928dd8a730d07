-- pgcombine_internal.delete_flagged()
-- Deletes flagged rows: failures without an attempt, quarantined keys with a negative number of updates, and rows of
-- components (see component_table). A role flags a row if it may update the row but not delete it.
-- Runs with its owner's rights. Every role may call it, since a role needs rights to flag a row.
-- Tables written: those for which component_table says how rows are flagged.
create or replace function pgcombine_internal.delete_flagged()
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _delete text;
begin
    perform pgcombine_internal.caller();
    for _delete in -- a row that another transaction has locked stays for a later call
        select format('delete from pgcombine.%1$I t
                       where t.ctid = any (array(select m.ctid from pgcombine.%1$I m
                           where %2$s for update skip locked))',
                   t.name, t.marked)
        from pgcombine.component_table t where t.marked is not null
    loop
        execute _delete;
    end loop;
end
$$;
