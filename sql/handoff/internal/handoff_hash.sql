-- pgcombine_internal.handoff_hash(queue) → text
-- Returns an expression that hashes a row's key to 64 bits, alike on all servers. PostgreSQL hashes an enum by the OID
-- of its label, which differs between servers. So enums, and arrays of enums, are hashed as text. For other keys the
-- expression is that of key_hash.
create or replace function pgcombine_internal.handoff_hash(queue text)
returns text
language sql stable
as $$
    select case when bool_or(e.typtype = 'e')
        then format('hash_record_extended(row(%s), 0)',
            string_agg(quote_ident(c.name) || case when e.typtype = 'e' then '::text' else '' end, ', '
                order by c.position))
        else pgcombine_internal.key_hash(handoff_hash.queue) end
    from pgcombine.queue_column c
    join pg_type y on y.oid = pgcombine_internal.base_type(c.type::regtype)
    join pg_type e on e.oid = case y.typcategory when 'A' then pgcombine_internal.base_type(y.typelem) else y.oid end
    where c.queue = handoff_hash.queue and c.role = 'key'
$$;
