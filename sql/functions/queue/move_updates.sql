-- pgcombine.move_updates(queue, suffix) → bigint
-- Moves what is pending, unpacked, to the updates table with the suffix, where rebucket prepares it; returns how many. Rows that
-- can't be unpacked are set aside.
create or replace function pgcombine.move_updates(queue text, suffix text)
returns bigint
language plpgsql
as $$
declare
    _columns text;
    _moved bigint;
begin
    perform pgcombine.hold_packed(move_updates.queue, format('pgcombine.%I', move_updates.queue || '_updates'));
    select string_agg(format('%I', c.name), ', ' order by c.position) into _columns
    from pgcombine.queue_column c where c.queue = move_updates.queue;
    execute format('with moved as (delete from pgcombine.%1$I returning *) insert into pgcombine.%2$I (%3$s) select %3$s from moved%4$s',
        move_updates.queue || '_updates', move_updates.queue || '_updates' || suffix, _columns,
        ' union all ' || pgcombine.packed_updates(move_updates.queue, 'moved'));
    get diagnostics _moved = row_count;
    return _moved;
end
$$;
