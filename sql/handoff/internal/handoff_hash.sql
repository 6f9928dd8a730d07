-- pgcombine_internal.handoff_hash(queue) → text
-- Returns an expression that hashes a row's key to 64 bits, alike on all servers. PostgreSQL hashes an enum by the OID
-- of its label, which differs between servers. So the parts of a key without a stable hash are hashed as text (see
-- stable_hash). For other keys the expression is that of key_hash.
create or replace function pgcombine_internal.handoff_hash(queue text)
returns text
language sql stable
as $$
    select case when bool_and(c.stable) then pgcombine_internal.key_hash(handoff_hash.queue)
        else format('hash_record_extended(row(%s), 0)',
            string_agg(quote_ident(c.name) || case when c.stable then '' else '::text' end, ', ' order by c.position))
        end
    from (
        select k.name, k.position, pgcombine_internal.stable_hash(k.queue, k.name) as stable
        from pgcombine.queue_column k
        where k.queue = handoff_hash.queue and k.role = 'key'
    ) c
$$;
