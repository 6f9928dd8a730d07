-- pgcombine_internal.require_temporary()
-- Raises unless the caller may make temporary tables. Searches for keys at fault and Python combiners need them.
-- Errors: 42501 the caller may not make temporary tables.
create or replace function pgcombine_internal.require_temporary()
returns void
language sql
as $$
    select pgcombine_internal.require(has_database_privilege(current_database(), 'temporary'), '42501',
        format('role "%s" may not create temporary tables in database "%s", but passes with Python combiners and searches for keys at fault need them',
            current_user, current_database()), format('grant temporary on database %I to %I', current_database(), current_user))
$$;
