-- pgcombine_internal.search_border(key) → integer
-- Returns the last key of a search in the same slice as a key of it. Part of run_search.
create or replace function pgcombine_internal.search_border(key integer)
returns integer
language sql stable
as $$
    select max(s.pgcombine_key) from pg_temp.pgcombine_search s
    where s.pgcombine_slice = (select k.pgcombine_slice from pg_temp.pgcombine_search k where k.pgcombine_key = search_border.key limit 1)
$$;
