-- pgcombine_internal.export_release(export, seq, put_back) → bigint
-- Ends the quarantine of one entry, or of all entries of an export (seq null); returns their number.
--   put_back  true: the entries wait again, with their sequences. A destination that keeps the highest sequence of each
--             key ignores outdated ones. False: the entries are deleted
-- Tables written: export_quarantine, <export>_exports.
-- Errors: PC021 unknown export; PC022 the entry isn't quarantined; 42501 the caller lacks the right work.
create or replace function pgcombine_internal.export_release(export text, seq bigint, put_back boolean)
returns bigint
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(export_release.export);
    _table constant text := format('pgcombine.%I', _export.export || '_exports');
    _entry record;
    _count bigint := 0;
begin
    perform pgcombine_internal.require_right(_export.queue, 'work');
    for _entry in
        delete from pgcombine.export_quarantine q
        where q.export = _export.export and (export_release.seq is null or q.seq = export_release.seq)
        returning q.entry
    loop
        _count := _count + 1;
        if export_release.put_back then
            execute format('insert into %s select * from jsonb_populate_record(null::%s, $1)', _table, _table)
                using _entry.entry;
        end if;
    end loop;
    perform pgcombine_internal.require(_count > 0 or export_release.seq is null, 'PC022',
        format('export "%s" has no quarantined entry %s', _export.export, export_release.seq),
        'pgcombine export quarantine ls lists them');
    return _count;
end
$$;
