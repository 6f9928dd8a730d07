-- pgcombine_internal.key_hash(queue [, alias]) → text
-- Returns the expression that hashes a row's key to 64 bits. Equal keys have equal hashes. The low bits of the hash say
-- to which hash range a key belongs. The hash isn't stored, since the hash of an enum changes when a dump is restored.
-- PostgreSQL's hash_record_extended leaves it undefined whether the seed that it passes on is null. Hash functions in C
-- ignore that. A hash function in SQL or another language could return different hashes of equal keys, so the
-- expression calls such a function directly.
--   alias  the row's alias in the query; null: the expression has unqualified column names
create or replace function pgcombine_internal.key_hash(queue text, alias text default null)
returns text
language plpgsql stable
as $$
declare
    _of constant text := coalesce(quote_ident(alias) || '.', '');
    _columns text;
    _column record;
    _hash text;
begin
    for _column in
        select quote_ident(c.name) as name, format('%s.%I', p.pronamespace::regnamespace, p.proname) as function,
               l.lanname in ('internal', 'c') as in_c
        from pgcombine.queue_column c
        join pg_opclass o on o.oid = pgcombine_internal.type_operator_class(c.type::regtype, 'hash')
        join pg_amproc a on a.amprocfamily = o.opcfamily and a.amproclefttype = o.opcintype
                        and a.amprocrighttype = o.opcintype and a.amprocnum = 2 -- 64-bit hash with a seed
        join pg_proc p on p.oid = a.amproc
        join pg_language l on l.oid = p.prolang
        where c.queue = key_hash.queue and c.role = 'key'
        order by in_c desc, c.position
    loop
        if _column.in_c then
            _columns := concat_ws(', ', _columns, _of || _column.name);
        else
            _hash := format('%s(%s, %s)', _column.function, _of || _column.name,
                coalesce(_hash, format('hash_record_extended(row(%s), 0)', _columns)));
        end if;
    end loop;
    return coalesce(_hash, format('hash_record_extended(row(%s), 0)', _columns));
end
$$;
