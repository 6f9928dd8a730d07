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
    _columns text;
begin
    select string_agg(format('%I', s.side || c.name), ', ' order by c.role, s.side desc, c.position)
    into _columns
    from pgcombine.queue_column c
    join (values ('old_'), ('new_'), ('')) s (side) on (c.role = 'key') = (s.side = '')
    where c.queue = _export.queue;
    perform pgcombine.add_observer(_export.queue, 'export ' || _export.export,
        format('insert into pgcombine.%I (%s) select %s from changes', _export.export || '_exports', _columns, _columns));
end
$$;
