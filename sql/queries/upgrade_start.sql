-- The start of the file that pgcombine db upgrade --sql prints. Locks out other upgrades until the transaction ends, as
-- an upgrade by the program does. Refuses a database that isn't at the revision pgcombine.upgrade_from, or that has a
-- schema if the setting is empty. Then the file would make an upgrade of another kind.
do $$
declare
    _from constant text := current_setting('pgcombine.upgrade_from');
    _found text;
begin
    perform set_config('lock_timeout', '60s', true) where current_setting('lock_timeout') = '0';
    loop
        begin
            if to_regnamespace('pgcombine') is not null then
                comment on schema pgcombine is 'Combine queues: what a user calls or reads, and the queues.';
            elsif _from = '' then
                create schema pgcombine;
            else
                raise exception 'database "%" has no pgcombine schema, so nothing was changed', current_database()
                    using errcode = '55000', hint = 'A file for a new database: pgcombine db upgrade --sql';
            end if;
            exit;
        exception -- another upgrade has created the schema, or a downgrade has removed it
            when unique_violation or duplicate_schema or invalid_schema_name then null;
        end;
    end loop;
    if to_regclass('pgcombine.schema_version') is not null then
        select v.version_num into _found from pgcombine.schema_version v;
    end if;
    if _found is distinct from nullif(_from, '') then
        raise exception 'database "%" has % and this file is for %, so nothing was changed', current_database(),
            coalesce('the pgcombine schema at revision ' || _found, 'no pgcombine tables'),
            coalesce('revision ' || nullif(_from, ''), 'a new database')
            using errcode = '55000', hint = 'A file for this database: pgcombine db upgrade --sql'
                || coalesce(' --from ' || _found, '');
    end if;
end
$$
