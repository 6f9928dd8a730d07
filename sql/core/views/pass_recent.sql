-- pgcombine.pass_recent
-- The last ten passes of each queue on which the reader has any right, from the journal, which goes back an hour.
create or replace view pgcombine.pass_recent with (security_barrier) as
select q.queue, p.bucket, p.pass, p.began, p.ended, date_part('epoch', p.ended - p.began) as seconds,
       p.updates, p.keys, p.changes, coalesce(p.mask, 0) + 1 as slices
from pgcombine.queue q
cross join lateral (
    select * from pgcombine.pass p where p.queue = q.queue and p.updates > 0 order by p.ended desc limit 10
) p
where (select pgcombine_internal.has_right('', 'monitor')) or pgcombine_internal.has_right(q.queue, 'use');
