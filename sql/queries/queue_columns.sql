-- The columns of a queue, keys first. Parameter: queue.
--   base   the type without domains and modifiers; for an array that of its elements
--   scale  for numeric and money: the number of digits after the point to which PostgreSQL rounds a value. Null: a
--          numeric without a scale, or another type
with recursive below (name, type, modifier) as (
    select a.attname, a.atttypid, a.atttypmod
    from pg_attribute a
    where a.attrelid = to_regclass(format('pgcombine.%%I', %(queue)s || '_updates')) and a.attnum > 0
        and not a.attisdropped
    union all
    select b.name, case t.typtype when 'd' then t.typbasetype else t.typelem end, case t.typtype
        when 'd' then t.typtypmod else b.modifier end
    from below b
    join pg_type t on t.oid = b.type
    where t.typtype = 'd' or t.typcategory = 'A' and t.typelem <> 0
)
select c.name, c.role, c.type,
       format_type(case when b.typcategory = 'A' and b.typelem <> 0 then pgcombine_internal.base_type(b.typelem)
           else b.oid end, null) as base,
       b.typcategory = 'A' and b.typelem <> 0 as is_array,
       (select case when l.type = 'money'::regtype then scale(1::money::numeric)
                    when l.modifier >= 4 then (((l.modifier - 4) & 2047) # 1024) - 1024 -- as in PostgreSQL's numeric.c
               end
        from below l
        where l.name = c.name and l.type in ('numeric'::regtype, 'money'::regtype)) as scale
from pgcombine.queue_column c
-- pg_attribute has the type's oid. To look up the type by its name, the role would need usage on the type's schema.
join pg_attribute a on a.attrelid = to_regclass(format('pgcombine.%%I', %(queue)s || '_updates')) and a.attname = c.name
join pg_type b on b.oid = pgcombine_internal.base_type(a.atttypid)
where c.queue = %(queue)s
order by c.position
