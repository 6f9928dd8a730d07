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
    foreach _name in array array[_queue.queue || '_updates', _queue.queue || '_values'] loop
        execute format('create table pgcombine.%I (like pgcombine.%I including defaults including constraints) partition by hash (%s)',
            _name || '_new', _name, _keys);
    end loop;
    for _number in 0 .. partitions - 1 loop
        perform pgcombine_internal.create_partition(_queue.queue, _number, partitions, '_new');
    end loop;
    execute format('insert into pgcombine.%I (%s) select %s from pgcombine.%I', _queue.queue || '_values_new', _columns, _columns, _queue.queue || '_values');
    for _number in 0 .. partitions - 1 loop
        _name := (pgcombine_internal.partition_tables(_queue.queue, _number, '_new'))[2];
        execute format('alter table %s add constraint %I primary key (%s)%s', _name,
            _queue.queue || '_values_b' || to_char(_number, 'FM0000') || '_pkey_new', _keys,
            ' using index tablespace ' || quote_ident(_queue.tablespaces[1 + _number % cardinality(_queue.tablespaces)]));
        execute format('analyze %s', _name);
    end loop;
end
$$;
