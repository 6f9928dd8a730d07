-- pgcombine_internal.refuse_password(target)
-- Refuses a connection string or URL that holds a password or another secret, since every role can read the catalog. A
-- password belongs into a password file, a service or the environment of the program that delivers.
-- Errors: PC003 the target holds a secret.
create or replace function pgcombine_internal.refuse_password(target text)
returns void
language plpgsql immutable
as $$
begin
    if pgcombine_internal.holds_secret(target) then
        raise exception 'an address with a password or another secret can''t be registered'
            using errcode = 'PC003',
                hint = 'leave the password out: a password file (~/.pgpass), a service or PGPASSWORD gives it, '
                '~/.netrc the '
                'user of a web address; pgcombine.ExportWorker(dsn, export, target=…) takes a web address with a '
                    'secret parameter';
    end if;
end
$$;
