-- pgcombine_internal.start_export(export, existing)
-- Adds the observer of an export, unless the export has it. From now on passes write the changes of the export's queue
-- as entries. A pass draws a sequence while it has claimed the bucket, so two passes over a key commit in the order of
-- their sequences.
--   existing  whether to replace the waiting entries with one for each key that has a value, without an old value
-- Tables written: <export>_exports, observer, queue, bucket.
-- Errors: PC021 unknown export; those of add_observer.
create or replace function pgcombine_internal.start_export(export text, existing boolean)
returns void
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(start_export.export);
    _parts constant jsonb := jsonb_build_object(
        'exports', format('pgcombine.%I', _export.export || '_exports'),
        'values', format('pgcombine.%I', _export.queue || '_values'),
        'keys', pgcombine_internal.column_list(_export.queue, 'key'),
        'olds', pgcombine_internal.column_list(_export.queue, 'value', '{old}'),
        'news', pgcombine_internal.column_list(_export.queue, 'value', '{new}'),
        'columns', pgcombine_internal.column_list(_export.queue, 'value'));
begin
    if start_export.existing then
        execute pgcombine_internal.fill('delete from {exports}', _parts);
        execute pgcombine_internal.fill('insert into {exports} ({keys}, {news}) select {keys}, {columns} from {values}',
            _parts);
    end if;
    if not exists (select from pgcombine.observer o
        where (o.queue, o.observer) = (_export.queue, 'export ' || _export.export))
    then
        perform pgcombine.add_observer(_export.queue, 'export ' || _export.export, pgcombine_internal.fill(
            'insert into {exports} ({keys}, {olds}, {news}) select {keys}, {olds}, {news} from changes', _parts));
    end if;
end
$$;
