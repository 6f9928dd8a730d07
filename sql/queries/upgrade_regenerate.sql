-- Makes the generated objects of each queue again, before the files grants.sql are applied. Sessions that use a queue
-- lock its relations first, then the catalog's tables. The files grants.sql lock the catalog's tables, since they
-- replace policies. The upgrade takes its locks in the same order, so it causes no deadlocks.
do $$ begin perform pgcombine_internal.regenerate(queue) from pgcombine.queue order by queue; end $$
