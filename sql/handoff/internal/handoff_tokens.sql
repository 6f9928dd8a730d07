-- pgcombine_internal.handoff_tokens(other, day, slice) → (token, digest)
-- Returns the writes of a day and slice, of which handoff_digests returns the digest.
create or replace function pgcombine_internal.handoff_tokens(other text, day date, slice integer, out token uuid,
    out digest uuid)
returns setof record
language sql stable
as $$
    select k.token, k.digest
    from pgcombine.handoff_token k, pgcombine.handoff_server s
    where (k.servers is null or k.servers @> array[handoff_tokens.other, s.name])
      and k.token >= (lpad(to_hex(extract(epoch from handoff_tokens.day)::bigint * 1000), 12, '0')
          || repeat('0', 20))::uuid
      and k.token < (lpad(to_hex(extract(epoch from handoff_tokens.day + 1)::bigint * 1000), 12, '0')
          || repeat('0', 20))::uuid
      and ('x' || right(k.token::text, 2))::bit(8)::integer & 63 = handoff_tokens.slice
    order by 1
$$;
