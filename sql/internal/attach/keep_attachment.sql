-- pgcombine_internal.keep_attachment(queue, source, alias, mapping, columns, reads, path) → integer
-- Records an attached table and makes its trigger function; returns the id of the record. The comments on the columns
-- of pgcombine.attachment explain the parameters.
-- Runs with its owner's rights, since the trigger function belongs to the schema. The trigger function itself runs with
-- the rights of the role that changes the table.
-- Tables written: pgcombine.attachment.
-- Errors: PC001 unknown queue; 42501 the caller may not make triggers of the table, or may not enqueue.
create or replace function pgcombine_internal.keep_attachment(queue text, source regclass, alias text, mapping text, columns name[],
    reads name[], path name[])
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(keep_attachment.queue);
    _id integer;
begin
    perform pgcombine_internal.require(has_table_privilege(pgcombine_internal.caller(), keep_attachment.source, 'trigger'), '42501',
        format('permission denied: %s may not make triggers of %s', pgcombine_internal.caller(), keep_attachment.source),
        format('grant trigger on %s to %I', keep_attachment.source, pgcombine_internal.caller()));
    perform pgcombine_internal.require(has_any_column_privilege(pgcombine_internal.caller(), format('pgcombine.%I', _queue.queue || '_updates'), 'insert'), '42501',
        format('permission denied: %s may not insert into pgcombine.%I', pgcombine_internal.caller(), _queue.queue || '_updates'),
        format('grant insert on pgcombine.%I to %I', _queue.queue || '_updates', pgcombine_internal.caller()));
    insert into pgcombine.attachment (queue, source, alias, mapping, columns, reads, path)
    values (_queue.queue, keep_attachment.source, keep_attachment.alias, keep_attachment.mapping, keep_attachment.columns,
            keep_attachment.reads, keep_attachment.path)
    returning id into _id;
    perform pgcombine_internal.generate_attached(_id);
    return _id;
end
$$;
