-- pgcombine_internal.contribution_sql(queue) → text
-- Returns the statement that replaces a source's contribution, after its beginning: replace_contribution puts a CTE
-- pgcombine_rows before it, which has the new updates. $1 is the source's id. The column pgcombine.queue.contribution
-- stores the text.
create or replace function pgcombine_internal.contribution_sql(queue text)
returns text
language sql stable
as $$
    select pgcombine_internal.fill(', pgcombine_changed as materialized (
    select * from ({parts}) as pgcombine_both where pgcombine_new is null or pgcombine_row is null or {differ}
), pgcombine_removed as (
    delete from {table} c using pgcombine_changed d
    where c.pgcombine_source = $1 and c.ctid = d.pgcombine_row and d.pgcombine_new is null
), pgcombine_replaced as (
    update {table} c set {replaced} from pgcombine_changed d
    where c.pgcombine_source = $1 and c.ctid = d.pgcombine_row and d.pgcombine_new
), pgcombine_added as (
    insert into {table} (pgcombine_source, {columns})
    select $1, {keys}, {new} from pgcombine_changed where pgcombine_row is null
    order by {keys} -- in order, an index takes keys faster
)
insert into {updates} ({columns}) select {keys}, {differences} from pgcombine_changed',
        jsonb_build_object('parts', pgcombine_internal.contribution_parts($1, 'pgcombine_rows',
                format('(select *, ctid as pgcombine_row from pgcombine.%I where pgcombine_source = $1) as c',
                    $1 || '_contributions')),
            'table', format('pgcombine.%I', $1 || '_contributions'),
            'updates', format('pgcombine.%I', $1 || '_updates'),
            'columns', pgcombine_internal.column_list($1), 'keys', pgcombine_internal.column_list($1, 'key'),
            'new', pgcombine_internal.column_list($1, 'value', '{new}'),
            'replaced', pgcombine_internal.column_list($1, 'value', '{name} = d.{new}'),
            'differ', string_agg(pgcombine_internal.differ_expression(c.type, quote_ident('new_' || c.name),
                quote_ident('old_' || c.name)), ' or '),
            'differences', string_agg(pgcombine_internal.expand(k.difference, quote_ident('old_' || c.name),
                quote_ident('new_' || c.name), c.type), ', ' order by c.position)))
    from pgcombine.queue_column c join pgcombine.combiner k using (combiner)
    where c.queue = $1
$$;
