-- pgcombine_internal.handoff_time(token) → timestamptz
-- Returns the time when a token was made. The first 48 bits of a UUID of version 7 (RFC 9562) are milliseconds since
-- 1970. Null: the UUID is of another version.
create or replace function pgcombine_internal.handoff_time(token uuid)
returns timestamptz
language sql immutable
as $$
    select to_timestamp(('x' || translate(left(token::text, 13), '-', ''))::bit(48)::bigint / 1000.0)
    where substr(token::text, 15, 1) = '7'
$$;
