-- pgcombine_internal.fold_expression(column) → text
-- Returns the aggregate expression that folds a value column of a key's updates into one value. The expression reads
-- from fold_source.
create or replace function pgcombine_internal.fold_expression("column" pgcombine.queue_column)
returns text
language sql stable
as $$
    select pgcombine_internal.expand(k.fold, quote_ident(($1).name), '', ($1).type, (
        select o.position from pgcombine.queue_column o where o.queue = ($1).queue and o.name = ($1).ordered_by),
            ($1).collation)
    from pgcombine.combiner k where k.combiner = ($1).combiner
$$;
