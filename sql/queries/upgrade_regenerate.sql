-- Makes the objects of each queue again. Sessions that use a queue lock its relations first, then the catalog. Grants
-- lock the catalog's tables, because of the policies on them, so the queues come first here, too.
do $$ begin perform pgcombine_internal.regenerate(queue) from pgcombine.queue order by queue; end $$
