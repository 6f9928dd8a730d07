-- pgcombine_internal.stable_hash(queue [, key_column]) → boolean
-- Returns whether the queue's keys keep their hash, and so their bucket, when a dump is restored.
--   key_column  only this part of the keys; null: all parts
-- Enum labels and object names (regclass and the like) are hashed by their OID, which a restore changes. The same holds
-- for arrays, composites, ranges and domains of them. After a restore the marks don't tell which updates of such keys
-- are combined. So passes delete the updates that they take from a queue with such keys (see end_pass), and the queue's
-- updates in a dump are pending.
create or replace function pgcombine_internal.stable_hash(queue text, key_column text default null)
returns boolean
language plpgsql stable -- PL/pgSQL keeps the query's plan: in a copied database bucket_log calls this often
as $$
begin
    return not exists (
        with recursive part as ( -- types that the keys are made of, except plain base types
            select t.oid, t.typtype, t.typelem, t.typbasetype, t.typrelid, t.typname
            from pgcombine.queue_column c
            join pg_attribute a on a.attname = c.name -- the type's name may have changed, or be out of reach
                and a.attrelid = to_regclass(format('pgcombine.%I', c.queue || '_values'))
            join pg_type t on t.oid = a.atttypid
            where c.queue = stable_hash.queue and c.role = 'key'
                and c.name = coalesce(key_column, c.name)
                and (t.typtype <> 'b' or t.typelem <> 0 or t.typname ~ '^(reg|aclitem$)')
            union
            select t.oid, t.typtype, t.typelem, t.typbasetype, t.typrelid, t.typname
            from part p
            cross join lateral (
                select unnest(array[p.typelem, p.typbasetype])
                union all select r.rngsubtype from pg_range r where p.oid in (r.rngtypid, r.rngmultitypid)
                union all select a.atttypid from pg_attribute a where a.attrelid = p.typrelid and a.attnum > 0
            ) o (type)
            join pg_type t on t.oid = o.type
        )
        select from part p where p.typtype = 'e' or p.typtype = 'b' and p.typname ~ '^(reg|aclitem$)');
end
$$;
