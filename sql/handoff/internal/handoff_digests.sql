-- pgcombine_internal.handoff_digests(other) → (day, slice, tokens, digest)
-- Returns digests of those writes on this server that both this server and another one must have: one for each day
-- (UTC) and slice that has such writes. tokens is their number. A token's slice is its last six bits. Days that are
-- partly older than the retention are left out.
create or replace function pgcombine_internal.handoff_digests(other text, out day date, out slice integer,
    out tokens bigint, out digest text)
returns setof record
language sql stable
as $$
    select (pgcombine_internal.handoff_time(k.token) at time zone 'UTC')::date,
        ('x' || right(k.token::text, 2))::bit(8)::integer & 63,
           count(*), md5(string_agg(k.token::text || k.digest::text, ',' order by k.token))
    from pgcombine.handoff_token k, pgcombine.handoff_server s
    where (k.servers is null or k.servers @> array[handoff_digests.other, s.name])
      and k.token >= (lpad(to_hex(
          extract(epoch from (now() at time zone 'UTC' - s.retention)::date + 1)::bigint * 1000), 12, '0')
          || repeat('0', 20))::uuid
    group by 1, 2
$$;
