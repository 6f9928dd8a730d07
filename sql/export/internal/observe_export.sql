-- pgcombine_internal.observe_export(export)
-- Adds the observer that writes every change of the export's queue as an entry. A pass draws the sequence while it has
-- claimed the bucket, so two passes over a key can't commit in another order.
-- Tables written: observer, queue.
-- Errors: PC021 unknown export; those of add_observer.
create or replace function pgcombine_internal.observe_export(export text)
returns void
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(observe_export.export);
    _columns constant text := concat_ws(', ', pgcombine_internal.column_list(_export.queue, 'key'),
        pgcombine_internal.column_list(_export.queue, 'value', '{old}'),
        pgcombine_internal.column_list(_export.queue, 'value', '{new}'));
begin
    perform pgcombine.add_observer(_export.queue, 'export ' || _export.export,
        format('insert into pgcombine.%I (%s) select %s from changes',
            _export.export || '_exports', _columns, _columns));
end
$$;
