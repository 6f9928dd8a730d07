-- pgcombine_internal.key_hash(queue [, alias]) → text
-- Returns the expression that hashes a row's key to 64 bits. Equal keys have equal hashes, and slices of keys are
-- slices of the hash. The hash isn't stored, since that of enums changes when a dump is restored.
-- PostgreSQL's hash_record_extended passes a seed that may or may not be null. C functions ignore that. A hash function
-- in SQL or another language may return different hashes of equal keys, so the expression calls it directly.
create or replace function pgcombine_internal.key_hash(queue text, alias text default null)
returns text
language plpgsql stable
as $$
declare
    _of constant text := coalesce(quote_ident(key_hash.alias) || '.', '');
    _columns text;
    _column record;
    _hash text;
begin
    select string_agg(_of || format('%I', c.name), ', ' order by c.position) filter (where l.lanname in ('internal', 'c'))
    into _columns
    from pgcombine.queue_column c
    join pg_proc p on p.oid = pgcombine_internal.type_hash(c.type::regtype)
    join pg_language l on l.oid = p.prolang
    where c.queue = key_hash.queue and c.role = 'key';
    _hash := coalesce(format('hash_record_extended(row(%s), 0)', _columns), '0');
    for _column in
        select c.name, pgcombine_internal.procedure_name(p.oid) as function
        from pgcombine.queue_column c
        join pg_proc p on p.oid = pgcombine_internal.type_hash(c.type::regtype)
        join pg_language l on l.oid = p.prolang
        where c.queue = key_hash.queue and c.role = 'key' and l.lanname not in ('internal', 'c')
        order by c.position
    loop
        _hash := format('%s(%s, %s)', _column.function, _of || quote_ident(_column.name), _hash);
    end loop;
    return _hash;
end
$$;
