-- pgcombine_internal.handoff_digest(payload) → uuid
-- Returns the digest of a write: the first half of the SHA-256 of its payload.
create or replace function pgcombine_internal.handoff_digest(payload text)
returns uuid
language sql immutable
as $$
    select encode(substr(sha256(convert_to(payload, 'UTF8')), 1, 16), 'hex')::uuid
$$;
