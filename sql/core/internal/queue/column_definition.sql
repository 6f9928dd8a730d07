-- pgcombine_internal.column_definition(column) → text
-- Returns the definition of a queue's column in the form that create_queue reads.
create or replace function pgcombine_internal.column_definition("column" pgcombine.queue_column)
returns text
language sql stable
as $$
    select format('%I %s%s%s%s', ($1).name, ($1).type, ' collate ' || ($1).collation,
        ' ' || coalesce((select split_part(k.function, '(', 1) from pgcombine.combiner k
            where k.combiner = ($1).combiner), ($1).combiner),
        '(' || quote_ident(($1).ordered_by) || ')')
$$;
