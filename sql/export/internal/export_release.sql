-- pgcombine_internal.export_release(export, seq, put_back) → bigint
-- Ends the quarantine of one entry, or of all entries of an export (seq null); returns their number.
--   put_back  true: the entries wait again, with their sequences, and with them all entries of the same keys. A
--             destination that keeps the highest sequence of each key ignores outdated ones. False: the entries are
--             deleted
-- Tables written: export_entry.
-- Errors: PC021 unknown export; PC022 the entry isn't quarantined; 42501 the caller lacks the right work.
create or replace function pgcombine_internal.export_release(export text, seq bigint, put_back boolean)
returns bigint
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(export_release.export);
    _count bigint;
begin
    perform pgcombine_internal.require_right(_export.queue, 'work');
    -- a delivery in progress may be adding entries to the quarantine
    perform from pgcombine.export_bucket x where x.export = _export.export order by x.bucket for update;
    if not put_back then
        delete from pgcombine.export_entry q
        where q.export = _export.export and q.error is not null
          and (export_release.seq is null or q.seq = export_release.seq);
    elsif export_release.seq is null then
        update pgcombine.export_entry q set error = null where q.export = _export.export and q.error is not null;
    else
        execute pgcombine_internal.fill(
            'update pgcombine.export_entry q set error = null
            from pgcombine.export_entry a cross join jsonb_populate_record(null::{log}, a.entry) asked,
                 pgcombine.export_entry o cross join jsonb_populate_record(null::{log}, o.entry) e
            where o.id = q.id and q.export = $1 and q.error is not null
              and a.export = $1 and a.seq = $2 and a.error is not null and {same_key}',
            jsonb_build_object('log', format('pgcombine.%I', _export.queue || '_changes'), 'same_key',
                pgcombine_internal.column_list(_export.queue, 'key', 'e.{name} {equals} asked.{name}', ' and ')))
        using _export.export, export_release.seq;
    end if;
    get diagnostics _count = row_count;
    perform pgcombine_internal.require(_count > 0 or export_release.seq is null, 'PC022',
        format('export "%s" has no quarantined entry %s', _export.export, export_release.seq),
        'pgcombine export quarantine ls lists them');
    if put_back and _count > 0 then
        perform pg_notify('pgcombine.export ' || _export.export, '');
    end if;
    return _count;
end
$$;
