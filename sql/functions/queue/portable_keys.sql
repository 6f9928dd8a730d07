-- pgcombine.portable_keys(queue) → boolean
-- Whether a key has the same hash where a dump is restored, and so stays in its bucket. Enum labels and names of objects
-- (regclass and the like) are hashed by their number, which is another there; so are arrays, composites, ranges and domains
-- of them. Nobody knows then which bucket's mark an update is combined by. So passes delete the updates of such queues
-- (see end_pass), a row of theirs holds one update, and all that a dump holds of them is pending.
create or replace function pgcombine.portable_keys(queue text)
returns boolean
language plpgsql stable -- it runs in each pass, and plpgsql keeps the plan
as $$
begin
    return not exists (
        with recursive part as ( -- types that the keys are made of, but for the simplest
            select t.oid, t.typtype, t.typelem, t.typbasetype, t.typrelid, t.typname
            from pgcombine.queue_column c join pg_type t on t.oid = c.type::regtype
            where c.queue = portable_keys.queue and c.role = 'key' and (t.typtype <> 'b' or t.typelem <> 0 or t.typname ~ '^(reg|aclitem$)')
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
