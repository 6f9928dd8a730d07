-- pgcombine_internal.claim_export(export) → (bucket, high)
-- Claims one of the buckets with something to deliver that no other worker has claimed. Null: there is none. The claim
-- lasts until the transaction ends.
--   high  the last sequence that may be delivered, because the queue was rebucketed after it (see change_turn). Null:
--         there is no limit
-- The transaction must be read committed. Otherwise its next statement could deliver again what the bucket's former
-- worker has delivered.
-- Errors: PC021 unknown export.
create or replace function pgcombine_internal.claim_export(export text, out bucket integer, out high bigint)
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(claim_export.export);
    _turn jsonb;
begin
    select pgcombine_internal.change_turn(l, (
        select jsonb_object_agg(x.bucket, x.after) from pgcombine.export_bucket x where x.export = _export.export))
    into _turn from pgcombine.change_log l where l.queue = _export.queue;
    for bucket, high in
        select b.bucket, case when _turn is not null then coalesce((_turn ->> b.bucket::text)::bigint, 0) end
        from pgcombine_internal.export_pending(_export) b order by random()
    loop
        perform from pgcombine.export_bucket x
        where x.export = _export.export and x.bucket = claim_export.bucket
          and (claim_export.high is null or x.after < claim_export.high) for update skip locked;
        if found then
            return;
        end if;
    end loop;
    bucket := null;
    high := null;
end
$$;
