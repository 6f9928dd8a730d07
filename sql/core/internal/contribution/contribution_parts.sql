-- pgcombine_internal.contribution_parts(queue, new, old) → text
-- Returns a query that folds two sets of updates by key. Each row has the key, new_<value> and old_<value>, and
-- pgcombine_new and pgcombine_old: whether each set has the key.
--   new, old  from items with the queue's columns
create or replace function pgcombine_internal.contribution_parts(queue text, new text, old text)
returns text
language sql stable
as $$
    select pgcombine_internal.fill('select {keys}, {values}, bool_or(pgcombine_new) as pgcombine_new, '
        'bool_or(not pgcombine_new) as pgcombine_old from (select {columns}, true as pgcombine_new from {new} '
        'union all select {columns}, false from {old}) as pgcombine_parts group by {keys}',
        jsonb_build_object('columns', pgcombine_internal.column_list($1),
            'keys', pgcombine_internal.column_list($1, 'key'), 'new', $2, 'old', $3,
            'values', string_agg(format('%s as %I', pgcombine_internal.expand(k.fold,
                format('(case when %spgcombine_new then %I end)', s.negated, c.name), '', c.type), s.prefix || c.name),
                ', ' order by c.position)))
    from pgcombine.queue_column c
    join pgcombine.combiner k using (combiner)
    cross join (values ('', 'new_'), ('not ', 'old_')) s (negated, prefix)
    where c.queue = $1
$$;
