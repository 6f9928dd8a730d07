-- Built-in combiners. A combiner makes a key's new value from its old value and its updates. Passes fold updates in any
-- groups and any order, so a combiner has to be associative and commutative.
--
--   combiner       types                                        result
--   sum            smallint integer bigint numeric real         the sum. The last digits of real and double precision
--                  double precision interval money              depend on the order, so create_queue warns of them
--   count          smallint integer bigint numeric              the sum of the updates' weights
--   min, max       any type with an order (B-tree)              the least, the greatest. A later update can't undo an
--                                                               earlier one
--   bool_and       boolean                                      whether all values are true
--   bool_or        boolean                                      whether any value is true
--   bit_and        smallint integer bigint bit                  the values combined bit by bit. A second equal update
--   bit_or bit_xor                                              undoes the first one in a bit_xor
--   array_union    any array of elements with an order          the elements of all arrays, each once, sorted. Null
--                                                               elements count, and come last
--   jsonb_merge    jsonb                                        the members of all objects, at every depth (see the
--                                                               function jsonb_merge)
--   last(at)       any; "at" is a value column with max         the value of the update with the greatest "at"
--   first(at)      any; "at" is a value column with min         the value of the update with the least "at"
--   computed       any                                          the old value or, where pgcombine.queue.computed
--                                                               applies, a query's result (see pass_template). The
--                                                               values in updates are ignored
--   hll            hll (extension hll)                          the union
--   tdigest        tdigest (extension tdigest)                  the union, an estimate that depends on the order
--   my.fn          any                                          the result of a user's fn(type, type) or aggregate of
--                                                               the type, which check_combiner tries on samples
--
-- Defaults. A value column that an update leaves out is 0 with sum, 1 with count, and null with any other combiner.
-- Nulls. Combiners other than last and first ignore a null in an update: it leaves their value unchanged, and the value
-- of a new key is null. Last and first take a null as a value: if the last update has null, the value is null. An
-- update with null in "at" counts only as long as every update of the key has null in "at". Among updates with equal
-- "at", last takes the greatest value, first the least, and both take a null only if all values are null. All columns
-- that "at" orders are compared together, so that they come from the same update.
-- NaN and infinity. A sum with a NaN in it is NaN, and no later update changes that; a sum of both infinities is NaN,
-- too. A delete_when such as n = 0 doesn't hold for NaN. A domain such as this one as the column's type refuses NaN and
-- infinity in enqueued updates:
--     create domain finite as double precision check (value not in ('NaN', 'Infinity', '-Infinity'));
--     select pgcombine.create_queue('sums', array['word text'], array['n finite sum']);
-- Overflow. If a sum is beyond its type's range, the pass raises an error (22003; 22008 for interval). The key's
-- updates stay pending, and after quarantine_after failed passes they move to the quarantine. Until then
-- <queue>_current shows null for the sum (see current_expression).
-- Equality. The type's equality decides whether a value has changed: from 1 to 1.0 is no change, and the values table
-- may have either.
-- Deleted keys. delete_when deletes all of the key's values. With last(at), an update that arrives late would bring the
-- key back, even if its "at" is older than the deletion. Keep a tombstone instead: a column
-- 'deleted boolean last(at)', and read "where deleted is not true", since an update without the column makes it null.
--
-- Differences. The column pgcombine.combiner.difference has the update that turns one value into another. Queues whose
-- combiners all have one take contributions. You may set it for a combiner of your own.
--
-- Templates, which expand fills in:
--   fold     aggregate over the pending updates of a key: {value} is the column
--   merge    combines the old value {old} with the folded updates {new}; either may be null
--            Fold and merge may also contain {type}, the type; {collated_type}, the type with its collation; {schema},
--            the type's schema; {least} and {greatest}, the aggregates of {value}; {position}, the position of "at"
--   initial  default of the column in <queue>_updates
--   types    base types that the combiner accepts; null: any type for which fold and merge work
with builtin (combiner, fold, merge, initial, types) as (
    values
        ('sum', 'pg_catalog.sum({value})::{type}',
            'coalesce({old} operator(pg_catalog.+) {new}, {old}, {new})::{type}', '0',
            array['smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision', 'interval', 'money']),
        ('count', 'pg_catalog.sum({value})::{type}',
            'coalesce({old} operator(pg_catalog.+) {new}, {old}, {new})::{type}', '1',
            array['smallint', 'integer', 'bigint', 'numeric']),
        ('min', '{least}::{type}', 'least({old}, {new})::{type}', null, null),
        ('max', '{greatest}::{type}', 'greatest({old}, {new})::{type}', null, null),
        ('bool_and', 'pg_catalog.bool_and({value})::{type}', 'coalesce({old} and {new}, {old}, {new})::{type}', null,
            array['boolean']),
        ('bool_or', 'pg_catalog.bool_or({value})::{type}', 'coalesce({old} or {new}, {old}, {new})::{type}', null,
            array['boolean']),
        ('bit_and', 'pg_catalog.bit_and({value})::{type}',
            'coalesce({old} operator(pg_catalog.&) {new}, {old}, {new})::{type}', null,
            array['smallint', 'integer', 'bigint', 'bit']),
        ('bit_or', 'pg_catalog.bit_or({value})::{type}',
            'coalesce({old} operator(pg_catalog.|) {new}, {old}, {new})::{type}', null,
            array['smallint', 'integer', 'bigint', 'bit']),
        ('bit_xor', 'pg_catalog.bit_xor({value})::{type}',
            'coalesce({old} operator(pg_catalog.#) {new}, {old}, {new})::{type}', null,
            array['smallint', 'integer', 'bigint', 'bit']),
        -- a subquery, since array_agg can't join arrays of different lengths
        ('array_union', '(case when pg_catalog.count({value}) operator(pg_catalog.>) 0 then (
            select coalesce(pg_catalog.array_agg(distinct e order by e), ''{}'')
            from pg_catalog.unnest(pg_catalog.array_agg(row({value}::{type})) filter (where {value} is not null))
                as t(v {collated_type})
                 cross join pg_catalog.unnest(v) as e) end)::{type}',
            '(case when {old} is not null or {new} is not null then (
            select coalesce(pg_catalog.array_agg(distinct e order by e), ''{}'')
            from (select pg_catalog.unnest({old}) as e union all select pg_catalog.unnest({new})) as t) end)::{type}',
                null, array['anyarray']),
        ('jsonb_merge', '(pgcombine_internal.jsonb_merge({value}) filter (where {value} is not null))::{type}',
            '(case when {old} is null or {new} is null or {old} operator(pg_catalog.=) {new} then coalesce({old}, {new})
                else pgcombine_internal.jsonb_merge(array[{old}, {new}]) end)::{type}', null, array['jsonb']),
        -- fold_source flags the last or first row. The template merge is empty: merge_expression doesn't use it
        ('last', 'pgcombine_internal.single({value}) filter (where pgcombine_chosen_{position})', '', null, null),
        ('first', 'pgcombine_internal.single({value}) filter (where pgcombine_chosen_{position})', '', null, null),
        ('computed', 'pgcombine_internal.single({value})::{type}', '{old}', null, null),
        ('hll', '{schema}.hll_union_agg({value})::{type}',
            'coalesce({schema}.hll_union({old}, {new}), {old}, {new})::{type}', null, array['hll']),
        ('tdigest', '{schema}.tdigest({value})::{type}',
            'coalesce(case when {old} is not null and {new} is not null then (select {schema}.tdigest(d) from (values '
                '({old}), ({new})) as t(d)) end, {old}, {new})',
            null, array['tdigest'])
), removed as (
    delete from pgcombine.combiner c
    where c.function is null and not exists (select from builtin b where b.combiner = c.combiner)
)
insert into pgcombine.combiner (combiner, fold, merge, initial, types)
select b.combiner, b.fold, b.merge, b.initial, b.types
from builtin b
on conflict (combiner) do update
set fold = excluded.fold, merge = excluded.merge, initial = excluded.initial, types = excluded.types;

update pgcombine.combiner
set difference = '(case when {old} is null then {new}
    else coalesce({new}, ''0'') operator(pg_catalog.-) {old} end)::{type}'
where combiner in ('sum', 'count');

-- An upgrade recreates the generated aggregates of user-defined combiners.
select pgcombine_internal.register_combiner(to_regprocedure(c.function), c.type::regtype)
from pgcombine.combiner c where to_regprocedure(c.function) is not null;
