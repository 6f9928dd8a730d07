-- Raises an error unless the schema pgcombine is at the revision {start}, or, if {start} is empty, has no revision yet.
-- A schema at a revision must also have the first revision whose digest is {baseline}.
-- The file that pgcombine db upgrade --sql writes contains this check.
do $$
declare
    _start constant text := nullif('{start}', '');
    _found text;
    _baseline text;
begin
    if to_regnamespace('pgcombine') is null then
        raise exception 'database "%" has no pgcombine schema, so nothing was changed', current_database()
            using errcode = '55000', hint = 'A file for a new database: pgcombine db upgrade --sql';
    end if;
    if to_regclass('pgcombine.schema_version') is not null then
        select v.version_num, to_jsonb(v) ->> 'baseline' into _found, _baseline from pgcombine.schema_version v;
    end if;
    if _found is not null and _baseline is distinct from '{baseline}' then
        raise exception 'another development state made the pgcombine schema of database "%", so nothing was changed',
            current_database() using errcode = '55000', hint = 'It can''t be upgraded. Save the values '
                '(pgcombine.<queue>_values), drop the schemas pgcombine and pgcombine_internal, and install again.';
    end if;
    if _found is distinct from _start then
        raise exception 'database "%" has % and this file is for %, so nothing was changed', current_database(),
            coalesce('the pgcombine schema at revision ' || _found, 'no pgcombine tables'),
            coalesce('revision ' || _start, 'a new database')
            using errcode = '55000', hint = 'A file for this database: pgcombine db upgrade --sql'
                || coalesce(' --from ' || _found, '');
    end if;
end
$$
