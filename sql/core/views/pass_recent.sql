-- pgcombine.pass_recent
-- The last ten passes that took updates, of each queue. They come from the journal, which goes back at least an hour.
--   queue    name of the queue
--   bucket   number of the bucket
--   pass     number of the pass in its bucket
--   began    when the pass began
--   ended    when the pass ended
--   seconds  how long the pass took
--   updates  number of updates that it combined or quarantined
--   keys     number of keys whose updates it combined
--   changes  number of keys whose values it changed
--   hash_ranges   number of hash ranges into which the keys were divided; the pass took the keys of one. 1: all keys
create or replace view pgcombine.pass_recent as
select q.queue, p.bucket, p.pass, p.began, p.ended, date_part('epoch', p.ended - p.began) as seconds,
       p.updates, p.keys, p.changes, coalesce(p.range_mask, 0) + 1 as hash_ranges
from pgcombine.queue q
cross join lateral (
    select * from pgcombine.pass p where p.queue = q.queue and p.updates > 0 order by p.ended desc limit 10
) p;
