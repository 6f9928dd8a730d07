-- pgcombine_internal.is_transient(sqlstate [, hint]) → boolean
-- Returns whether an error comes from the state of the server or the session, such as a lost connection, a read-only
-- transaction, a conflict, a missing resource, a timeout, a shutdown, a damaged table, or a copy in which post_restore
-- has not run.
-- Three kinds of errors don't count, since a key can cause them (see next_try): lack of memory (53200), too many
-- temporary files (53400) and internal errors (XX000, which PostgreSQL raises for a value of more than a gigabyte).
--   hint  the error's hint. It tells a full lock table (transient) from a lack of memory, which has the same SQLSTATE
create or replace function pgcombine_internal.is_transient(sqlstate text, hint text default null)
returns boolean
language sql immutable
as $$
    select coalesce(left(sqlstate, 2) in ('08', '25', '40', '53', '55', '57', '58', 'XX')
            and sqlstate not in ('53200', '53400', 'XX000')
        or sqlstate = '53200' and hint ~ E'max_\\w+_per_'
        or sqlstate = 'PC012', false)
$$;
