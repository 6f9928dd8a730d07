-- pgcombine_internal.export_refused(export, entry, error)
-- Quarantines an entry that the destination refused for its data. Call it in the transaction that took the entry out of
-- its bucket.
--   entry  the JSON that the statement of export_take returned
-- Tables written: export_quarantine.
create or replace function pgcombine_internal.export_refused(export text, entry jsonb, error text)
returns void
language sql
as $$
    insert into pgcombine.export_quarantine as q (export, seq, entry, error)
    values (export_refused.export, (export_refused.entry ->> 'seq')::bigint, export_refused.entry, left(export_refused.error, 2000))
    on conflict on constraint export_quarantine_pkey do update set error = excluded.error, since = now()
$$;
