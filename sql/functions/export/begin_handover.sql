-- pgcombine.begin_handover(export, queue)
-- From here to the end of the transaction no pass of the export's queue and no delivery of it runs; what is quarantined
-- is dropped, for a full state follows, from here or from another server.
-- Tables written: bucket, export_quarantine.
create or replace function pgcombine.begin_handover(export text, queue text)
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
