-- pgcombine_internal.claim_export(export) → bucket
-- Claims one of the buckets with something to deliver that no other worker has claimed. Null: there is none. The claim
-- lasts until the transaction ends.
-- If the numbers of a full state run out, the function begins the full state again, and returns null.
-- The transaction must be read committed. Otherwise its next statement could deliver again what the bucket's former
-- worker has delivered.
-- Errors: PC021 unknown export.
create or replace function pgcombine_internal.claim_export(export text)
returns integer
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(claim_export.export);
    _bucket pgcombine.export_bucket;
begin
    for _bucket.bucket in
        select x.bucket
        from pgcombine.export_bucket x
        join pgcombine.change_bucket b on b.queue = _export.queue and b.bucket = x.bucket
        where x.export = _export.export and (b.last > x.after or x.full_after is not null or exists (
            select from pgcombine.export_entry q
            where q.export = x.export and q.bucket = x.bucket and q.error is null))
        order by random()
    loop
        select x.* into _bucket from pgcombine.export_bucket x
        where x.export = _export.export and x.bucket = _bucket.bucket for update skip locked;
        if found and _bucket.full_after is not null and _bucket.full_end - _bucket.full_seq < 2 * _export.batch then
            perform pgcombine_internal.claim_buckets(_export.queue);
            perform pgcombine_internal.begin_full_state(_export);
            return null;
        elsif found then
            return _bucket.bucket;
        end if;
    end loop;
    return null;
end
$$;
