-- pgcombine_internal.column_list(queue [, role, form, separator]) → text
-- Returns a queue's columns in order as one text, each written by a template (see fill); null: there are none.
--   role  'key' or 'value'; null: both
--   form  the template. {name}: the column's name. {literal}: its name as a literal. {old} and {new}: its names in the
--         changes (old_…, new_…). {position}, {number}: its place, from 0 and from 1. {type}: its type. {collate}: the
--         word collate and the column's collation, or nothing. {initial}: the default of an update, as a literal.
--         {equals}: its type's equality operator. {fold}: the aggregate that folds it (see fold_expression)
create or replace function pgcombine_internal.column_list(queue text, role text default null,
    form text default '{name}', separator text default ', ')
returns text
language plpgsql stable
as $$
begin
    return (
        select string_agg(case form when '{name}' then quote_ident(c.name)
            else pgcombine_internal.fill(form, jsonb_build_object(
                'name', quote_ident(c.name), 'literal', quote_literal(c.name), 'old', quote_ident('old_' || c.name),
                'new', quote_ident('new_' || c.name),
                'position', c.position, 'number', c.position + 1, 'type', c.type, 'collate', ' collate ' || c.collation,
                'initial', quote_nullable(k.initial),
                'equals', case when strpos(form, '{equals}') > 0
                    then (pgcombine_internal.type_operator(c.type::regtype, 3)).name end,
                'fold', case when strpos(form, '{fold}') > 0 then pgcombine_internal.fold_expression(c) end)) end,
            separator order by c.position)
        from pgcombine.queue_column c
        left join pgcombine.combiner k using (combiner)
        where c.queue = column_list.queue and c.role = coalesce(column_list.role, c.role));
end
$$;
