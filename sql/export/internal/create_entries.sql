-- pgcombine_internal.create_entries(export)
-- Makes the table of an export's entries, <export>_exports, with its partitions, wake-up trigger and privileges.
-- Errors: PC003 the queue has columns with names of the entries' own; PC021 unknown export.
create or replace function pgcombine_internal.create_entries(export text)
returns void
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(create_entries.export);
    _keys constant text := pgcombine_internal.column_list(_export.queue, 'key');
    _definitions constant text := concat_ws(', ', pgcombine_internal.column_list(_export.queue, 'key', '{name} {type}{collate} not null'),
        pgcombine_internal.column_list(_export.queue, 'value', '{old} {type}{collate}'), pgcombine_internal.column_list(_export.queue, 'value', '{new} {type}{collate}'));
    _grantee regrole;
begin
    begin
        execute format($create$create table pgcombine.%I (%s, seq bigint not null default nextval('pgcombine.export_sequence'))
                       partition by hash (%s)$create$, _export.export || '_exports', _definitions, _keys);
    exception when duplicate_column then
        raise exception 'queue "%" can''t be exported: %', _export.queue, sqlerrm
            using errcode = 'PC003', hint = 'its columns may not be named seq, old_… or new_… as its entries'' are';
    end;
    for _bucket in 0 .. _export.buckets - 1 loop
        execute format(
            'create table pgcombine.%I partition of pgcombine.%I for values with (modulus %s, remainder %s)
             with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1)',
            _export.export || '_exports_b' || to_char(_bucket, 'FM0000'), _export.export || '_exports', _export.buckets, _bucket);
    end loop;
    execute format('create index on pgcombine.%I (seq)', _export.export || '_exports');
    perform pgcombine_internal.regenerate_export(_export.export);
    perform pgcombine_internal.grant_standing(_export.export, is_export => true);
    for _grantee in -- passes write entries, and roles that operate the queue put refused entries back
        select distinct a.grantee::regrole
        from pg_class c cross join lateral aclexplode(c.relacl) a
        where c.oid in (format('pgcombine.%I', _export.queue || '_updates')::regclass, format('pgcombine.%I', _export.queue || '_quarantine')::regclass)
          and a.privilege_type = 'DELETE' and a.grantee not in (0, c.relowner)
    loop
        execute format('grant insert on pgcombine.%I to %s', _export.export || '_exports', _grantee);
    end loop;
end
$$;
