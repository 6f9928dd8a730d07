-- pgcombine.search_source(queue, first, last) → text
-- Part of isolate: the updates of these keys of the search, as a source for plan_sql. first and last are expressions.
create or replace function pgcombine.search_source(queue text, first text, last text)
returns text
language sql stable
as $$
    select format('(select %s from pg_temp.pgcombine_search where pgcombine_key between %s and %s and pgcombine_held is null) as updates',
        pgcombine.column_list(search_source.queue), search_source.first, search_source.last)
$$;
