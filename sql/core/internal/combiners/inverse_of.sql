-- pgcombine_internal.inverse_of(combiner) → text
-- Returns the expression that takes back {value} of {type}; null: the combiner has no inverse.
create or replace function pgcombine_internal.inverse_of(combiner text)
returns text
language sql immutable
as $$
    select case when combiner in ('sum', 'count') then '(-{value})::{type}' end
$$;
