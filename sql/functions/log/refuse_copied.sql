-- pgcombine.refuse_copied()
-- Raises unless the database is the one in which the stored ids were given (see own_lineage).
-- Errors: PC012 it is a copy, which a worker adopts: try again then.
create or replace function pgcombine.refuse_copied()
returns void
language plpgsql stable
as $$
begin
    if not pgcombine.own_lineage() then
        raise exception 'database "%" is a copy that was not adopted yet', current_database()
            using errcode = 'PC012', hint = 'try again in a new transaction: a worker adopts it when it starts, and so does select pgcombine.adopt()';
    end if;
end
$$;
