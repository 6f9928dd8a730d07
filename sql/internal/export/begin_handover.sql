-- pgcombine_internal.begin_handover(export, queue)
-- First step of own_export and disown_export: until the transaction ends no pass over the export's queue runs, and no
-- delivery of the export. Quarantined entries are deleted, since a full state follows, from this server or from another
-- one.
-- Tables written: bucket, export_quarantine.
create or replace function pgcombine_internal.begin_handover(export text, queue text)
returns void
language plpgsql
as $$
begin
    perform from pgcombine.bucket b where b.queue = begin_handover.queue order by b.bucket for update;
    update pgcombine.bucket b set bucket = b.bucket where b.queue = begin_handover.queue; -- as in create_export
    perform from pgcombine.export_bucket b where b.export = begin_handover.export order by b.bucket for update;
    delete from pgcombine.export_quarantine q where q.export = begin_handover.export;
end
$$;
