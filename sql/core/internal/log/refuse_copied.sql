-- pgcombine_internal.refuse_copied()
-- Raises unless this database assigned the stored transaction ids (see own_cluster).
-- Errors: PC012 the database is a copy; its queues work again once post_restore has run.
create or replace function pgcombine_internal.refuse_copied()
returns void
language plpgsql stable
as $$
begin
    if not pgcombine_internal.own_cluster() then
        raise exception 'database "%" is a copy in which post_restore has not run yet', current_database()
            using errcode = 'PC012',
                hint = 'start a worker, which runs it, or run select pgcombine.post_restore(); then try again in a new '
                'transaction';
    end if;
end
$$;
