-- pgcombine_internal.handoff_new_token() → uuid
-- Returns a new token: a UUID of version 7 (RFC 9562) with 48 bits of milliseconds since 1970 and 74 random bits.
create or replace function pgcombine_internal.handoff_new_token()
returns uuid
language sql volatile
as $$
    select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
            || '7' || substr(r.hex, 14, 3) || substr(r.hex, 17))::uuid
    from (select replace(gen_random_uuid()::text, '-', '') as hex) r
$$;
