-- pgcombine_internal.inverse_of(combiner) → text
-- Returns the expression that takes back a value %1$s of type %2$s; null: the combiner has no inverse.
create or replace function pgcombine_internal.inverse_of(combiner text)
returns text
language sql immutable
as $$
    select case when combiner in ('sum', 'count') then '(-%1$s)::%2$s' end
$$;
