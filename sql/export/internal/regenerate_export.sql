-- pgcombine_internal.regenerate_export(export)
-- Makes the view <export>_exports of the changes and entries that the export is still to deliver, or replaces it, if
-- this server delivers the export. Keys of a full state (see begin_full_state) aren't in the view.
create or replace function pgcombine_internal.regenerate_export(export pgcombine.export)
returns void
language plpgsql
as $$
declare
    _export constant pgcombine.export := regenerate_export.export;
    _view constant text := _export.export || '_exports';
begin
    if not pgcombine_internal.delivers(_export.export) then
        return;
    end if;
    execute pgcombine_internal.fill(
'create or replace view pgcombine.{view} as
select {logged}, c._number + (e.epoch << 40) as seq
from pgcombine.export e
join pgcombine.export_bucket x on x.export = e.export
join {log} c on c._bucket = x.bucket and c._sequence > x.after
where e.export = {export}
union all
select {logged}, q.seq
from pgcombine.export_entry q
cross join jsonb_populate_record(null::{log}, q.entry) c
where q.export = {export} and q.error is null', jsonb_build_object(
        'view', quote_ident(_view), 'log', format('pgcombine.%I', _export.queue || '_changes'),
        'export', quote_literal(_export.export), 'logged', concat_ws(', ',
            pgcombine_internal.column_list(_export.queue, 'key', 'c.{name}'),
            pgcombine_internal.column_list(_export.queue, 'value', 'c.{old}'),
            pgcombine_internal.column_list(_export.queue, 'value', 'c.{new}'))));
    perform pgcombine_internal.comment_changes(_view, _export.queue,
        format('Changes of queue %s that export %s has not delivered yet.', _export.queue, _export.export),
        '{"seq": "Number of the entry: later entries of a key have higher numbers."}');
end
$$;
