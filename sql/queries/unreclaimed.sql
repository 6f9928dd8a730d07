-- The queues whose log has a segment of more than 128 kB. Parameter, given
-- twice: the names of queues; null: all.
select distinct q.queue
from pg_class c
join pgcombine.queue q on q.queue = regexp_replace(c.relname, '_updates_b\d+_s\d+$', '')
where c.relnamespace = 'pgcombine'::regnamespace and c.relkind = 'r' and c.relname ~ '_updates_b\d+_s\d+$'
  and pg_table_size(c.oid) > 128 * 1024
  and (%s::text[] is null or q.queue = any (%s))
