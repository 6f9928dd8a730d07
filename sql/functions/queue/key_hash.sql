-- pgcombine.key_hash(queue [, alias]) → text
-- The expression that hashes the key of a row: 64 bits, equal for equal keys. Slices of a bucket's keys are
-- slices of it. It isn't stored: of enums, where a dump is restored, it is another.
-- hash_record_extended leaves it open whether the seed is null. Functions in C don't look; a type whose hash
-- function is in SQL or another language gets different hashes of equal keys by it, so that one is called itself.
create or replace function pgcombine.key_hash(queue text, alias text default null)
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
    join pg_proc p on p.oid = pgcombine.type_hash(c.type::regtype)
    join pg_language l on l.oid = p.prolang
    where c.queue = key_hash.queue and c.role = 'key';
    _hash := coalesce(format('hash_record_extended(row(%s), 0)', _columns), '0');
    for _column in
        select c.name, pgcombine.procedure_name(p.oid) as function
        from pgcombine.queue_column c
        join pg_proc p on p.oid = pgcombine.type_hash(c.type::regtype)
        join pg_language l on l.oid = p.prolang
        where c.queue = key_hash.queue and c.role = 'key' and l.lanname not in ('internal', 'c')
        order by c.position
    loop
        _hash := format('%s(%s, %s)', _column.function, _of || quote_ident(_column.name), _hash);
    end loop;
    return _hash;
end
$$;
