-- The rollups: their definition, how far the backfill is, and why they may miss changes. Parameter, given twice: the
-- name of a rollup; null: all.
select r.queue as rollup, r.source::text, r.key, r.value, r.filter, r.keep, r.slice_by,
       case when r.ready_at is not null then 'ready'
            when r.done > 0 then 'backfilled ' || r.done || ' of ' || r.slices || ' slices'
            when r.boundary <> '' then 'backfilled down to ' || r.boundary
            else 'not backfilled' end as state,
       r.ready_at, array(select p.problem from pgcombine_internal.rollup_problems(r.queue) p) as problems
from pgcombine.rollup r
where r.queue = %s or %s::text is null
order by r.queue
