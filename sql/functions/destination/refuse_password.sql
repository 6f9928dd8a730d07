-- pgcombine.refuse_password(target)
-- Refuses a connection string or URL that holds a password or another secret: the catalog is readable by everybody.
-- It belongs into a password file, a service or the environment of the program that delivers.
-- Errors: PC003.
create or replace function pgcombine.refuse_password(target text)
returns void
language plpgsql immutable
as $$
begin
    -- in a URI, libpq reads %77 for w, in names as well
    if pgcombine.percent_decoded(target) ~* '\m((ssl)?password|oauth_client_secret|scram_(client|server)_key)\s*='
       or target ~ '^\s*\w[\w+.-]*://[^/@]*:[^/@]*@' then
        raise exception 'an address with a password can''t be registered'
            using errcode = 'PC003', hint = 'leave the password out: a password file (~/.pgpass), a service or PGPASSWORD gives it';
    end if;
end
$$;
