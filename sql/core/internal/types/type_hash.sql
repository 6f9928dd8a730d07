-- pgcombine_internal.type_hash(type) → oid
-- Returns the function that hashes a type to 64 bits with a seed; null: there is none.
create or replace function pgcombine_internal.type_hash(type oid)
returns oid
language sql stable
as $$
    select p.amproc
    from pg_opclass c
    join pg_amproc p on p.amprocfamily = c.opcfamily and p.amproclefttype = c.opcintype and p.amprocrighttype = c.opcintype
                    and p.amprocnum = 2
    where c.oid = pgcombine_internal.type_operator_class(type, 'hash')
$$;
