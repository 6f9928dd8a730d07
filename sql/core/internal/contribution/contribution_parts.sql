-- pgcombine_internal.contribution_parts(queue, rows, stored [, types]) → text
-- Returns a query that folds updates by key, and joins them with stored values. Each row has the key, new_<value> and
-- old_<value>, and of the side that has the key: pgcombine_new, which is true, and pgcombine_row.
--   rows    a from item with the queue's columns: the updates
--   stored  a from item with these columns and pgcombine_row, in which no key comes twice
--   types   by column, a wider type in which its updates are folded
create or replace function pgcombine_internal.contribution_parts(queue text, rows text, stored text,
    types jsonb default '{}')
returns text
language sql stable
as $$
    select pgcombine_internal.fill('select {both}, {new}, {old}, pgcombine_new, pgcombine_row from (
        select {keys}, {folds}, true as pgcombine_new from {rows} group by {keys}
    ) as n full join (select {keys}, {values}, pgcombine_row from {stored}) as o on {same}',
        jsonb_build_object('rows', $2, 'stored', $3, 'keys', pgcombine_internal.column_list($1, 'key'),
            'both', pgcombine_internal.column_list($1, 'key', 'coalesce(n.{name}, o.{name}) as {name}'),
            'same', pgcombine_internal.column_list($1, 'key', 'n.{name} {equals} o.{name}', ' and '),
            'new', pgcombine_internal.column_list($1, 'value', '{new}'),
            'old', pgcombine_internal.column_list($1, 'value', '{old}'),
            'values', pgcombine_internal.column_list($1, 'value', '{name} as {old}'),
            'folds', string_agg(format('%s as %I', pgcombine_internal.expand(k.fold, quote_ident(c.name), '',
                coalesce($4 ->> c.name, c.type)), 'new_' || c.name), ', ' order by c.position)))
    from pgcombine.queue_column c join pgcombine.combiner k using (combiner)
    where c.queue = $1 and c.role = 'value'
$$;
