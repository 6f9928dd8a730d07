-- pgcombine.hold_packed(queue, updates)
-- Takes packed rows whose arrays can't be updates (see unfit_packed) out of a queue's updates, each alone. They are
-- entries of the quarantine, of a thousand updates at most, whose key has the updates themselves, those of the arrays
-- side by side: {"pgcombine_packed": [{"word": "a", "n": 1}, …]}. Retry puts them back as plain rows, or raises.
--   updates  the table, or the partition
-- Tables written: the updates, quarantined_key.
create or replace function pgcombine.hold_packed(queue text, updates text)
returns void
language plpgsql
as $$
declare
    _unfit constant record := pgcombine.unfit_packed(hold_packed.queue);
    _columns text;
    _arrays text;
begin
    if _unfit.lengths is null then
        return;
    end if;
    select string_agg(format('%I', c.name), ', ' order by c.position), string_agg(format('b.pgcombine_%s', c.position), ', ' order by c.position)
    into _columns, _arrays
    from pgcombine.queue_column c where c.queue = hold_packed.queue;
    execute format(
        'with broken as (
             delete from %1$s where pgcombine_packed is not null and (%2$s or %3$s) returning *
         ), numbered as (
             select row_number() over () as pgcombine_row, * from broken
         ), single as (
             select pgcombine_row, 0 as pgcombine_number, %4$s from numbered
             union all
             select b.pgcombine_row, m.* from numbered b cross join lateral (
                 select pgcombine_number, %4$s from unnest(%5$s) with ordinality as m (%4$s, pgcombine_number)) m
         )
         insert into pgcombine.quarantined_key (queue, key, updates, attempts, sqlstate, error)
         select $1, jsonb_build_object(''pgcombine_packed'',
                    jsonb_agg(to_jsonb(s) - array[''pgcombine_row'', ''pgcombine_number''] order by pgcombine_number)),
                count(*), 0, ''PC004'', ''a packed row whose arrays are of different lengths, or hold keys that are null or too long''
         from single s group by pgcombine_row, pgcombine_number / 1000',
        hold_packed.updates, _unfit.lengths, _unfit.keys, _columns, _arrays)
    using hold_packed.queue;
end
$$;
