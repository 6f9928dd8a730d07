-- pgcombine_internal.column_list(queue [, role, form, separator]) → text
-- Returns a queue's columns in order, each formatted, as one text; null: there are none.
--   role  'key' or 'value'; null: both
--   form  of a column. %1$I: its name. %2$s: its position. %3$s: its type. %4$s: its collation (' collate …', or
--         nothing). %5$s: its type's equality operator. %6$I and %7$I: its names in the changes (old_…, new_…). %8$s:
--         the aggregate that folds it (see fold_expression)
create or replace function pgcombine_internal.column_list(queue text, role text default null, form text default '%I', separator text default ', ')
returns text
language plpgsql stable
as $$
begin
    return (
        select string_agg(format(form, c.name, c.position, c.type, ' collate ' || c.collation,
                case when form like '%\%5$s%' then pgcombine_internal.operator_name(pgcombine_internal.type_operator(c.type::regtype, 3)) end,
                'old_' || c.name, 'new_' || c.name, case when form like '%\%8$s%' then pgcombine_internal.fold_expression(c) end),
            separator order by c.position)
        from pgcombine.queue_column c
        where c.queue = column_list.queue and c.role = coalesce(column_list.role, c.role));
end
$$;
