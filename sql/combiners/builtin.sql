-- Built-in combiners. A combiner is (old ∪ updates) → new, associative and commutative, so that a queue's
-- updates may be folded in any portions and any order.
--   fold    aggregate over the pending updates of a key; %1$s is the column, %3$s its type
--   merge   old value %1$s with folded updates %2$s; either may be null
--   initial default of the column in <queue>_updates
--   types   base types that it accepts; null: any type for which fold and merge compile
-- A null in an update counts as nothing.
with builtin (combiner, fold, merge, initial, types) as (
    values
        ('sum', 'sum(%1$s)::%3$s', 'coalesce(%1$s + %2$s, %1$s, %2$s)::%3$s', '0',
            array['smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision', 'interval', 'money']),
        ('count', 'sum(%1$s)::%3$s', 'coalesce(%1$s + %2$s, %1$s, %2$s)::%3$s', '1',
            array['smallint', 'integer', 'bigint', 'numeric']),
        ('min', 'min(%1$s)::%3$s', 'least(%1$s, %2$s)', null, null),
        -- the updates of a key come to the pass as one, made by the worker of them and the old value
        ('python', 'pgcombine.single(%1$s)', '%2$s', null, null),
        ('max', 'max(%1$s)::%3$s', 'greatest(%1$s, %2$s)', null, null)
), removed as (
    delete from pgcombine.combiner c
    where not exists (select from builtin b where b.combiner = c.combiner)
)
insert into pgcombine.combiner (combiner, fold, merge, initial, types)
select b.combiner, b.fold, b.merge, b.initial, b.types
from builtin b
on conflict (combiner) do update
set fold = excluded.fold, merge = excluded.merge, initial = excluded.initial, types = excluded.types;
