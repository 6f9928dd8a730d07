-- The columns of a queue for statements that Python writes, keys first. A queue that is spread over other databases is
-- here only a table of values, which is partitioned by the key. Parameter: queue.
--   type        the type below a domain, without length and precision
--   equals      the equality operator of a key column's type
--   shown       the type to which a key is cast, since psycopg makes of it what can't be hashed, or ''
--   composite   whether it is a composite type
--   enqueue     whether the role may insert into columns of the queue's updates
--   read        whether the role may select the column's current value
with asked (queue) as (values (%s::text)),
there as (
    select c.name, c.role, c.position, a.atttypid,
           has_any_column_privilege(to_regclass('pgcombine.' || quote_ident(c.queue || '_updates')), 'insert')
               as enqueue,
           has_column_privilege(to_regclass('pgcombine.' || quote_ident(c.queue || '_current')), c.name, 'select')
               as read
    from asked
    join pgcombine.queue_column c using (queue)
    -- pg_attribute has the type's oid. To look up the type by its name, the role would need usage on the type's schema.
    join pg_attribute a on a.attname = c.name
        and a.attrelid = to_regclass('pgcombine.' || quote_ident(asked.queue || '_values'))
    union all
    select a.attname, case when a.attnum = any (p.partattrs) then 'key' else 'value' end, a.attnum, a.atttypid,
           true, true
    from asked
    join pg_partitioned_table p on p.partrelid = to_regclass('pgcombine.' || quote_ident(asked.queue || '_values'))
    join pg_attribute a on a.attrelid = p.partrelid and a.attnum > 0
    where not exists (select from pgcombine.queue q where q.queue = asked.queue)
)
select t.name, t.role, pgcombine_internal.type_name(y.oid, -1) as type, o.name as equals,
       case when 'jsonb'::regtype in (y.oid, y.typelem) or 'm' in (y.typtype, e.typtype)
           then case when e.oid is null then 'text' else 'text[]' end else '' end as shown,
       y.typtype = 'c' as composite, t.enqueue, t.read
from there t
join pg_type y on y.oid = pgcombine_internal.base_type(t.atttypid)
left join pg_type e on y.typcategory = 'A' and e.oid = y.typelem
left join lateral pgcombine_internal.type_operator(y.oid, 3) o on t.role = 'key'
order by t.position
