-- pgcombine_internal.update_columns(queue) → text
-- Returns the columns of a table that takes rows like those of <queue>_updates: without a key a row is refused, a value
-- that is not given has its default.
create or replace function pgcombine_internal.update_columns(queue text)
returns text
language sql stable
as $$
    select concat_ws(', ', pgcombine_internal.column_list($1, 'key', '{name} {type}{collate} not null'),
        pgcombine_internal.column_list($1, 'value', '{name} {type}{collate} default {initial}'))
$$;
