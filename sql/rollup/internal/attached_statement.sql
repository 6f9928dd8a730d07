-- pgcombine_internal.attached_statement(attachment, minus, plus) → text
-- Returns the statement that enqueues a change of an attached table. The statement folds the updates first, so that it
-- enqueues nothing for values that an edit leaves unchanged.
--   minus, plus  from items of the rows before and after the change, see attached_rows; null: there are none
create or replace function pgcombine_internal.attached_statement(attachment pgcombine.attachment, minus text, plus text)
returns text
language sql stable
as $$
    select pgcombine_internal.fill('insert into pgcombine.{updates} ({columns}) select {keys}, {folds} from ({rows}) '
        'as pgcombine_rows group by {keys} having {changed}',
        jsonb_build_object('updates', quote_ident(($1).queue || '_updates'),
            'columns', pgcombine_internal.column_list(($1).queue),
            'keys', pgcombine_internal.column_list(($1).queue, 'key'),
            'folds', pgcombine_internal.column_list(($1).queue, 'value', '{fold} as {name}'),
            'changed', pgcombine_internal.column_list(($1).queue, 'value',
                '{fold} is distinct from ''0''::{type}', ' or '),
            'rows', concat_ws(' union all ',
                case when attached_statement.minus is not null then pgcombine_internal.attached_rows($1,
                    attached_statement.minus, true) end,
                case when attached_statement.plus is not null then pgcombine_internal.attached_rows($1,
                    attached_statement.plus) end)))
$$;
