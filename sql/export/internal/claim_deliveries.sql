-- pgcombine_internal.claim_deliveries(export [, act]) → pgcombine.export
-- Claims an export's queue and its deliveries: until the transaction ends, no pass over the queue runs, and the export
-- delivers nothing. Returns the export's row, read after the claim of the queue. The function writes new versions of
-- the bucket rows, so that a pass with an older snapshot fails (see claim_buckets).
--   act  see claim_buckets
-- Tables written: bucket.
-- Errors: PC021 unknown export; 42501 the caller doesn't own the schema; those of claim_buckets.
create or replace function pgcombine_internal.claim_deliveries(export text, act text default null)
returns pgcombine.export
language plpgsql
as $$
declare
    _export pgcombine.export;
    _claimed text;
begin
    perform pgcombine_internal.require_export(claim_deliveries.export);
    perform pgcombine_internal.require_owner();
    loop
        _export := pgcombine_internal.require_export(claim_deliveries.export);
        exit when _export.queue = _claimed; -- during the wait the export may have been recreated for another queue
        _claimed := _export.queue;
        perform pgcombine_internal.claim_buckets(_claimed, act);
    end loop;
    update pgcombine.bucket b set bucket = b.bucket where b.queue = _claimed; -- new row versions: see the header
    perform from pgcombine.export_bucket b where b.export = _export.export order by b.bucket for update;
    return _export;
end
$$;
