-- pgcombine_internal.refuse_cluster_identity() trigger, before update or delete, statement level, on
--     pgcombine.cluster_identity
-- Refuses UPDATE and DELETE of the cluster identity, unless the database is a copy: then another database assigned the
-- stored transaction ids (see own_cluster). A session that has checked the identity stores the number of the table's
-- file, and checks again only when the number changes (see wake). TRUNCATE changes it; UPDATE and DELETE don't. The
-- primary key and a check constraint refuse further rows.
-- Errors: PC012 the database isn't a copy.
create or replace function pgcombine_internal.refuse_cluster_identity()
returns trigger
language plpgsql
as $$
begin
    perform pgcombine_internal.require(not pgcombine_internal.own_cluster(), 'PC012',
        format('the cluster identity of database "%s" doesn''t change', current_database()),
        'to restore only data, first truncate pgcombine.cluster_identity');
    return null;
end
$$;
create or replace trigger pgcombine_cluster_identity before update or delete on pgcombine.cluster_identity
    for each statement execute function pgcombine_internal.refuse_cluster_identity();
