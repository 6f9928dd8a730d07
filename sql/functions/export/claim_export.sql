-- pgcombine.claim_export(export [, busy]) → integer
-- Claims a bucket with entries that no other worker has; null: there is none. The claim lasts as long as the
-- transaction, which must be read committed: what it reads next must see what a rival that had the bucket deleted.
--   busy  buckets that the caller leaves alone
-- Errors: PC021 unknown export.
create or replace function pgcombine.claim_export(export text, busy integer[] default '{}')
returns integer
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine.require_export(claim_export.export);
    _bucket integer;
    _pending boolean;
begin
    for _bucket in
        select b from generate_series(0, _export.buckets - 1) b where not b = any (claim_export.busy) order by random()
    loop
        execute format('select exists (select from pgcombine.%I)', _export.export || '_exports_b' || to_char(_bucket, 'FM0000'))
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
