-- pgcombine_internal.refuse_copied()
-- Raises unless the stored transaction ids were given in this database (see own_lineage).
-- Errors: PC012 the database is a copy; it works again once a worker has adopted it.
create or replace function pgcombine_internal.refuse_copied()
returns void
language plpgsql stable
as $$
begin
    if not pgcombine_internal.own_lineage() then
        raise exception 'database "%" is a copy that was not adopted yet', current_database()
            using errcode = 'PC012',
                hint = 'start a worker, which adopts it, or run select pgcombine.adopt(); then try again in a new '
                'transaction';
    end if;
end
$$;
