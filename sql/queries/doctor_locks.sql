-- The server's room for locks, and what may need it.
--   capacity    the room, see lock_capacity
--   held        number of locks that are held in the server now, without those of the fast path
--   drop_queue  the queue with the most segments; null if there is no queue
--   drop_locks  number of locks that dropping this queue takes, see locks_to_drop
--   tables      number of tables, views and sequences that a dump of the database locks
select pgcombine_internal.lock_capacity() as capacity,
       (select count(*) from pg_locks l where l.granted and not l.fastpath) as held,
       q.queue as drop_queue, case
           when q.queue is not null then pgcombine_internal.locks_to_drop(q.queue) end as drop_locks,
       (select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.relkind in ('r', 'p', 'v', 'm', 'S') and n.nspname not in ('pg_catalog', 'information_schema')
            and n.nspname !~ '^pg_toast') as tables
from (select 1) always
left join (select q.queue from pgcombine.queue q order by q.partitions * q.segments desc, q.queue limit 1) q on true
