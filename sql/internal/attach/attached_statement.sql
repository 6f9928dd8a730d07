-- pgcombine_internal.attached_statement(attachment, minus, plus) → text
-- Returns the statement that enqueues a change of an attached table. It folds the updates first, so that what an edit
-- leaves unchanged enqueues nothing.
--   minus, plus  from items of the rows before and after the change, see attached_rows; null: there are none
create or replace function pgcombine_internal.attached_statement(attachment pgcombine.attachment, minus text, plus text)
returns text
language sql stable
as $$
    select format('insert into pgcombine.%I (%s) select %s, %s from (%s) as pgcombine_rows group by %3$s having %6$s',
        ($1).queue || '_updates',
        string_agg(format('%I', c.name), ', ' order by c.position),
        string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key'),
        string_agg(format('%s as %I', f.fold, c.name), ', ' order by c.position) filter (where c.role = 'value'),
        concat_ws(' union all ',
            case when attached_statement.minus is not null then pgcombine_internal.attached_rows($1, attached_statement.minus, true) end,
            case when attached_statement.plus is not null then pgcombine_internal.attached_rows($1, attached_statement.plus) end),
        string_agg(format('%s is distinct from ''0''::%s', f.fold, c.type), ' or ' order by c.position)
            filter (where c.role = 'value'))
    from pgcombine.queue_column c
    left join pgcombine.combiner k using (combiner)
    cross join lateral (select format(k.fold, quote_ident(c.name), null, c.type) as fold) f
    where c.queue = ($1).queue
$$;
