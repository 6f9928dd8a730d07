-- pgcombine_internal.tend_budget(budget) → boolean
-- Gives expired holds back to their keys. Merges the smallest free chips of keys that have twice as many as an added
-- amount: what holds give back is a chip each time. Waits for nobody. Returns whether more holds may have expired.
-- The keys are those in random pages of <budget>_chips, where a key with many chips is likely to be.
-- Tables written: <budget>_chips, <budget>_holds, <budget>_updates.
create or replace function pgcombine_internal.tend_budget(budget pgcombine.budget)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _most constant integer := 1000; -- holds, keys
    _queue constant text := (budget).queue;
    _parts constant jsonb := jsonb_build_object(
        'keys', pgcombine_internal.column_list(_queue, 'key'), 'parts', (budget).chips,
        'its_keys', pgcombine_internal.column_list(_queue, 'key', 'c.{name}'),
        'same', pgcombine_internal.column_list(_queue, 'key', 'c.{name} {equals} k.{name}', ' and '),
        'chips', format('pgcombine.%I', _queue || '_chips'), 'holds', format('pgcombine.%I', _queue || '_holds'),
        'updates', format('pgcombine.%I', _queue || '_updates'));
    _ended bigint;
begin
    execute pgcombine_internal.fill('lock table {chips} in row exclusive mode', _parts); -- see budget_functions
    execute pgcombine_internal.fill('
        with expired as materialized (
            select h.hold from {holds} h where h.expires <= clock_timestamp() order by h.expires limit $1
            for update skip locked
        ), ended as (
            delete from {holds} h using expired x where h.hold = x.hold returning h.*
        ), back as (
            insert into {chips} ({keys}, amount) select {keys}, amount from ended
        )
        insert into {updates} ({keys}, available, held) select {keys}, amount, - amount from ended', _parts)
    using _most;
    get diagnostics _ended = row_count;
    begin
        execute pgcombine_internal.fill('
            with many as materialized (
                select k.* from (select distinct {keys} from {chips} tablesample system ($1)) k
                where (select count(*) from (select from {chips} c where {same} limit 2 * {parts} + 1) c) > 2 * {parts}
                limit $2
            ), small as materialized (
                select c.chip from many k cross join lateral (
                    select c.chip from {chips} c where {same} order by c.amount desc offset {parts}) c
            ), free as materialized (
                select {its_keys}, c.chip from {chips} c where c.chip = any (array(select chip from small))
                and exists (select from many k where {same}) for update of c skip locked
            ), gone as (
                delete from {chips} c using free k where {same} and c.chip = k.chip returning {its_keys}, c.amount
            )
            insert into {chips} ({keys}, amount) select {keys}, sum(amount) from gone group by {keys}', _parts)
        using least(100, 200.0 / greatest(1, pg_relation_size(format('pgcombine.%I', _queue || '_chips')) / 8192)),
            _most;
    exception when numeric_value_out_of_range then
        null; -- the sum of a key's small chips doesn't fit one chip, so they stay
    end;
    return _ended = _most;
end
$$;
