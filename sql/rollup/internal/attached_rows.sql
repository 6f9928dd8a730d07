-- pgcombine_internal.attached_rows(attachment, relation [, minus]) → text
-- Returns the select that turns rows of an attached table into updates: the result of the mapping, as the queue's
-- columns.
--   relation  a from item with the columns of the table, without its alias
--   minus     whether to return the inverse, which takes back what the rows added
create or replace function pgcombine_internal.attached_rows(attachment pgcombine.attachment, relation text,
    minus boolean default false)
returns text
language sql stable
as $$
    -- the line break ends a comment at the end of the mapping
    select format(E'select %s from %s as %I cross join lateral (%s\n) as pgcombine_mapped',
        string_agg(case when attached_rows.minus and c.role = 'value'
                        then format('(-(%s::%s))::%s', e.value, c.type, c.type)
                        else format('%s::%s', e.value, c.type) end || format(' as %I', c.name), ', '
                            order by c.position),
        attached_rows.relation, ($1).alias, ($1).mapping)
    from pgcombine.queue_column c
    left join pgcombine.combiner k using (combiner)
    cross join lateral (select case when c.name = any (($1).columns) then format('pgcombine_mapped.%I', c.name)
                                    else quote_literal(k.initial) end as value) e
    where c.queue = ($1).queue
$$;
