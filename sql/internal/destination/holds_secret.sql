-- pgcombine_internal.holds_secret(target) → boolean
-- Returns whether a connection string or URL holds a password or another secret that libpq takes.
create or replace function pgcombine_internal.holds_secret(target text)
returns boolean
language sql immutable
as $$
    -- libpq decodes %77 to w in a URI, in parameter names, too
    select pgcombine_internal.percent_decoded(target) ~* '\m((ssl)?password|oauth_client_secret|scram_(client|server)_key)\s*='
        or target ~ '^\s*\w[\w+.-]*://[^/@]*:[^/@]*@'
$$;
