-- pgcombine_internal.python_sql(queue, arrived) → text
-- Returns the text that a pass with Python observers appends to its statement. With this text the result has a row
-- without a change first, and then a row for each change. Each row begins with the counts. PostgreSQL runs the whole
-- pass at the first fetch, and a nested loop keeps the order of its outer rows.
--   queue    the queue's row
--   arrived  whether the result also has the folded updates after the changes, in the columns of keys and new values
create or replace function pgcombine_internal.python_sql(queue pgcombine.queue, arrived boolean)
returns text
language sql stable
as $$
    select case when not arrived then ', c.* from (values (1), (2)) as part (number) left join changes c on number = 2'
        else pgcombine_internal.fill(
            ', c.* from (values (1), (2), (3)) as part (number) cross join lateral ('
                'select {nulls} where number = 1 '
                'union all select {keys}, {old_values}, {new_values} from changes where number = 2 '
                'union all select {keys}, {no_values}, {values} from arrived where number = 3) c',
            jsonb_build_object(
                'keys', (queue).pass ->> 'keys',
                'values', (queue).pass ->> 'new_values',
                'nulls', concat_ws(', ',
                    pgcombine_internal.column_list((queue).queue, 'key', 'null::{type} as {name}'),
                    pgcombine_internal.column_list((queue).queue, 'value', 'null::{type} as {old}'),
                    pgcombine_internal.column_list((queue).queue, 'value', 'null::{type} as {new}')),
                'old_values', pgcombine_internal.column_list((queue).queue, 'value', '{old}'),
                'new_values', pgcombine_internal.column_list((queue).queue, 'value', '{new}'),
                'no_values', pgcombine_internal.column_list((queue).queue, 'value', 'null'))) end
$$;
