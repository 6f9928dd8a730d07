-- pgcombine_internal.prepare_tables(queue, partitions)
-- First step of rebucket: makes the tables <queue>_updates_new and <queue>_values_new with so many partitions, and
-- copies the values.
-- Tables written: <queue>_values_new.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.prepare_tables(queue text, partitions integer)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(prepare_tables.queue);
    _columns constant text := pgcombine_internal.column_list(_queue.queue);
    _keys constant text := pgcombine_internal.column_list(_queue.queue, 'key');
    _name text;
begin
    -- The key of the new updates has no cast to own_tx, since the check below calls its function for each row.
    execute format('create table pgcombine.%I (like pgcombine.%I including defaults including constraints)
                    partition by list (((pgcombine_tx >> %s) & %s))',
        _queue.queue || '_updates_new', _queue.queue || '_updates', _queue.segment_bits, _queue.segments - 1);
    execute format('create table pgcombine.%I (like pgcombine.%I including defaults including constraints)
                    partition by hash (%s)', _queue.queue || '_values_new', _queue.queue || '_values', _keys);
    perform pgcombine_internal.create_partitions(_queue.queue, partitions, '_new');
    -- With what PostgreSQL checks of a segment as a check, exchange_tables needs no scan under its lock.
    for _place in 0 .. _queue.segments - 1 loop
        execute format('alter table pgcombine.%I add constraint pgcombine_place check (%s)',
            _queue.queue || '_updates_s' || _place || '_new',
            pg_get_partition_constraintdef(format('pgcombine.%I', _queue.queue || '_updates_s' || _place)::regclass));
    end loop;
    execute format('insert into pgcombine.%I (%s) select %s from pgcombine.%I',
        _queue.queue || '_values_new', _columns, _columns, _queue.queue || '_values');
    for _number in 0 .. partitions - 1 loop
        _name := pgcombine_internal.values_table(_queue.queue, _number, '_new');
        execute format('alter table %s add constraint %I primary key (%s)%s', _name,
            _queue.queue || '_values_b' || to_char(_number, 'FM0000') || '_pkey_new', _keys,
            ' using index tablespace '
            || quote_ident(_queue.tablespaces[1 + _number % cardinality(_queue.tablespaces)]));
        execute format('analyze %s', _name);
    end loop;
end
$$;
