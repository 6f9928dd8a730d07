-- Brings the generated objects of each queue up to date, before the files grants.sql are applied. This locks queues'
-- relations. The files grants.sql lock tables of the catalog. Sessions that use a queue lock in the same order.
do $$ begin perform pgcombine_internal.regenerate(queue) from pgcombine.queue order by queue; end $$
