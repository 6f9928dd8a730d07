-- pgcombine_internal.holds_secret(target) → boolean
-- Returns whether a connection string or URL holds a password or another secret: a secret parameter of libpq, a
-- password before the host, a user before the host of a web address, or a query parameter of a web address with a name
-- such as token or password.
create or replace function pgcombine_internal.holds_secret(target text)
returns boolean
language sql immutable
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
    -- libpq decodes %77 to w in a URI, even in parameter names, and web servers do the same
    select pgcombine_internal.percent_decoded(
        target) ~* '\m((ssl)?password|oauth_client_secret|scram_(client|server)_key)\s*='
        or target ~ '^\s*\w[\w+.-]*://[^/@]*:[^/@]*@'
        or target ~* '^\s*https?://[^/?#]*@'
        or target ~* '^\s*https?:' and pgcombine_internal.percent_decoded(target)
           ~* '[?&;#](code|[^=&;#]*(token|key|secret|signature|sig|auth|authorization|pass'
               '|password|passwd|pwd|credentials?|jwt|session|sid|bearer|hmac))='
$$;
