-- pgcombine {version}: makes pgcombine's schema, or upgrades it to revision {head}. Nothing that it holds is lost.
-- Apply the file as the role that is to own pgcombine, with psql -X -v ON_ERROR_STOP=1 -f FILE, or with any migration
-- tool. The file is one statement: it is applied completely or not at all. It can be applied again.
do $pgcombine_file$
declare
    _search_path constant pg_catalog.text := pg_catalog.current_setting('search_path');
    _safe_path constant pg_catalog.text := pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    _known constant pg_catalog.text[] := '{known}'; -- the revisions that this file can upgrade from
    _found pg_catalog.text;
    _baseline pg_catalog.text;
    _steps integer; -- the number of revisions that the schema has
    _what pg_catalog.text;
    _owner pg_catalog.text;
    _role pg_catalog.text;
    _lock_timeout constant pg_catalog.text := current_setting('lock_timeout');
    _check constant pg_catalog.text := current_setting('check_function_bodies');
    _messages constant pg_catalog.text := current_setting('client_min_messages');
begin
    perform set_config('client_min_messages', 'warning', true) where _messages <> 'error'; -- no notices of each step
    if current_setting('transaction_isolation') <> 'read committed' or current_setting('transaction_read_only') = 'on'
       or pg_client_encoding() <> 'UTF8'
    then
        raise exception 'pgcombine''s schema is made in a transaction that is read committed and may write, by a '
            'client with the encoding UTF8, so nothing was changed' using errcode = '55000',
            hint = 'Set default_transaction_isolation, default_transaction_read_only and client_encoding.';
    end if;
    select string_agg(p, ', ') into _what
    from unnest(array['create', 'temporary']) p
    where not has_database_privilege(current_database(), p)
      and (p = 'temporary' or to_regnamespace('pgcombine') is null);
    if _what is not null then
        raise exception 'the role "%" lacks the privilege % on database "%", so nothing was changed', current_user,
            _what, current_database() using errcode = '42501',
            hint = format('Let the database''s owner grant %s on database %I to %I.', _what, current_database(),
                current_user);
    end if;
    execute $pgcombine_step$
{lock}
$pgcombine_step$;
    if to_regclass('pgcombine.schema_version') is not null then
        select v.version_num, to_jsonb(v) ->> 'baseline' into _found, _baseline from pgcombine.schema_version v;
    end if;
    _steps := case when _found is null then 0 else array_position(_known, _found) end;
    if _found is not null and _baseline is distinct from '{baseline}' then
        raise exception 'another development state made the pgcombine schema of database "%", so nothing was changed',
            current_database() using errcode = '55000', hint = 'It can''t be upgraded. Save the values '
                '(pgcombine.<queue>_values), drop the schemas pgcombine and pgcombine_internal, and install again.';
    elsif _steps is null then
        raise exception 'the pgcombine schema of database "%" is newer than this file (revision %, the file has %), so '
            'nothing was changed', current_database(), _found, _known[cardinality(_known)]
            using errcode = '55000', hint = 'Apply the file of the newer pgcombine.';
    end if;
    for _what, _owner, _role in
{foreign_objects}
    loop
        raise exception '% belongs to the role "%", whose code would run as each user of pgcombine', _what, _owner
            using errcode = '42501',
                hint = format('Apply this file as "%s" if that role is to own pgcombine; else drop '
                'the object, or give it to "%s".', _owner, _role);
    end loop;
    execute $pgcombine_step$
{locks}
$pgcombine_step$;
{revisions}
{steps}
    perform set_config('lock_timeout', _lock_timeout, true), set_config('check_function_bodies', _check, true),
        set_config('client_min_messages', _messages, true), set_config('search_path', _search_path, true);
end
$pgcombine_file$;
