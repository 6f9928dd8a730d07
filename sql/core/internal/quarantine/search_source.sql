-- pgcombine_internal.search_source(queue, first, last) → text
-- Returns the updates of a range of a search's keys, as a source for plan_sql. Part of run_search.
--   first, last  expressions of the keys' numbers
create or replace function pgcombine_internal.search_source(queue text, first text, last text)
returns text
language sql stable
as $$
    select format('(select %s from pg_temp.pgcombine_search where pgcombine_key between %s and %s and pgcombine_held is null) as updates',
        pgcombine_internal.column_list(search_source.queue), search_source.first, search_source.last)
$$;
