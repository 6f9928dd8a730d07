-- pgcombine_internal.current_sql(queue) → text
-- Returns the query of the view <queue>_current: the values combined with the pending updates.
-- The query leaves out updates of quarantined keys, since the next pass moves them to the quarantine.
-- A sum beyond its type's range is null, with a warning (see current_expression). Any other error in combining a key
-- fails the query.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.current_sql(queue text)
returns text
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
    _columns constant text := pgcombine_internal.column_list(_queue.queue);
begin
    return pgcombine_internal.fill('select {columns} from (select {keys}, {fold} from {source} group by {keys}) as '
        'folded where not coalesce({gone}, false)',
        jsonb_build_object('columns', _columns, 'keys', pgcombine_internal.column_list(_queue.queue, 'key'),
            'fold', (select string_agg(format('%s as %I', pgcombine_internal.current_expression(c), c.name), ', '
                order by c.position)
                     from pgcombine.queue_column c where c.queue = _queue.queue and c.role = 'value'),
            'gone', coalesce(nullif(concat_ws(' or ', '(' || _queue.delete_when || ')',
                '(' || _queue.expire_when || ')'), ''), 'false'),
            'source', pgcombine_internal.fold_source(_queue.queue, pgcombine_internal.fill(
                '(select {columns} from pgcombine.{values} union all select {columns} from pgcombine.{pending} where '
                    '{not_quarantined}) as parts',
                jsonb_build_object('columns', _columns, 'values', quote_ident(_queue.queue || '_values'),
                    'pending', quote_ident(_queue.queue || '_pending'),
                    'not_quarantined', format(
                        'not exists (select from %s where %s)', pgcombine_internal.quarantined_keys(_queue.queue),
                        pgcombine_internal.key_is_quarantined(_queue.queue)))))));
end
$$;
