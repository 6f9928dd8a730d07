-- pgcombine_internal.claim_export(export) → integer
-- Claims one of an export's buckets: one that has entries, and that no other worker has claimed. Returns the number of
-- the bucket; null: there is none.
-- The claim lasts until the transaction ends.
-- The transaction must be read committed. Otherwise its next statement could see entries that the bucket's former
-- worker has deleted.
-- Errors: PC021 unknown export.
create or replace function pgcombine_internal.claim_export(export text)
returns integer
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(claim_export.export);
    _bucket integer;
    _pending boolean;
begin
    for _bucket in select b from generate_series(0, _export.buckets - 1) b order by random() loop
        execute format('select exists (select from pgcombine.%I)',
            _export.export || '_exports_b' || to_char(_bucket, 'FM0000'))
        into _pending;
        if _pending then
            perform from pgcombine.export_bucket b
            where b.export = _export.export and b.bucket = _bucket for update skip locked;
            if found then
                return _bucket;
            end if;
        end if;
    end loop;
    return null;
end
$$;
