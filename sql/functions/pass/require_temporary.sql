-- pgcombine.require_temporary()
-- Raises 42501 unless the caller may make temporary tables, as a search for keys at fault and Python combiners do.
create or replace function pgcombine.require_temporary()
returns void
language plpgsql stable
as $$
begin
    if not has_database_privilege(current_database(), 'temporary') then
        raise exception 'role "%" may not create temporary tables in database "%", which passes with Python combiners and searches for keys at fault do',
            current_user, current_database()
            using errcode = '42501', hint = format('grant temporary on database %I to %I', current_database(), current_user);
    end if;
end
$$;
