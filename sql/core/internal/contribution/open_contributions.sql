-- pgcombine_internal.open_contributions(queue) → pgcombine.queue
-- Checks that the caller may contribute to a queue, and makes the table <queue>_contributions unless it exists. Returns
-- the queue's catalog row. Sessions that call it at the same time wait for the one that makes the table.
--   <queue>_contributions  the folded updates of each source: pgcombine_source is the source's id in
--                          pgcombine.contribution. A source has a key once
-- Runs with its owner's rights, for roles that may enqueue. Such a role needs the privilege to insert into all columns
-- of <queue>_updates, and no row security policies there may apply to it, since the owner's rights ignore both.
-- Tables written: pgcombine.queue, component_table.
-- Errors: PC001 unknown queue; PC002 a relation <queue>_contributions exists; PC003 a combiner without a difference,
-- or a front; 40001 the queue was changed since the snapshot; 42501 the caller lacks the right to enqueue.
create or replace function pgcombine_internal.open_contributions(queue text)
returns pgcombine.queue
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set default_tablespace = '' -- not that of the caller, who may lack the right to create objects in it
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _role constant name := pgcombine_internal.caller();
    _queue pgcombine.queue;
    _updates constant regclass := to_regclass(format('pgcombine.%I', queue || '_updates'));
    _table constant text := format('pgcombine.%I', queue || '_contributions');
    _column pgcombine.queue_column;
begin
    select q.* into _queue from pgcombine.queue q where q.queue = open_contributions.queue;
    if not found then
        perform pgcombine_internal.enqueue_elsewhere(queue, null, '[]');
        raise exception '"%" takes no contributions: its queues are elsewhere', queue
            using errcode = 'PC003', hint = 'contribute to these queues: to each of them, the updates of its keys';
    end if;
    perform pgcombine_internal.require_right(_queue.queue, 'enqueue', _role);
    if pgcombine_internal.under_policies(_updates, _role) or exists (
        -- by number: PostgreSQL may evaluate the privilege first, for columns of other queues, whose names would raise
        select from pgcombine.queue_column c join pg_attribute a on a.attrelid = _updates and a.attname = c.name
        where c.queue = _queue.queue and not has_column_privilege(_role, _updates, a.attnum, 'insert'))
    then
        raise exception 'permission denied: role "%" may not insert all columns and rows of %', _role, _updates
            using errcode = '42501', hint = 'contribute with a role that has the right enqueue, and no row security '
                'policies on this table';
    elsif _queue.contribution is not null then
        return _queue;
    end if;

    perform from pgcombine.queue q where q.queue = _queue.queue for no key update;
    _queue := pgcombine_internal.require_queue(_queue.queue);
    if _queue.contribution is not null then
        return _queue;
    end if;
    perform pgcombine_internal.require(to_regclass(_table) is null, 'PC002', format('a relation %s exists', _table),
        'drop or rename it first');
    select c.* into _column
    from pgcombine.queue_column c join pgcombine.combiner k using (combiner)
    where c.queue = _queue.queue and k.difference is null order by c.position limit 1;
    perform pgcombine_internal.require(_column.name is null, 'PC003',
        format('queue "%s" takes no contributions: column "%s" has the combiner %s, which can''t take a value back',
            _queue.queue, _column.name, _column.combiner),
        'sum and count can; to correct a value instead, use last(at) and enqueue the new value with a later "at"');
    execute format('create table %s (pgcombine_source bigint not null, %s%s, primary key (pgcombine_source, %s))',
        _table, pgcombine_internal.column_list(_queue.queue, form => '{name} {type}{collate}'), (
            select format(', constraint %I check (%s)', 'a value isn''t finite: no update could take it back',
                string_agg(format('((%1$I operator(pg_catalog.-) %1$I) operator(pg_catalog.=) ''0'')', c.name),
                    ' and '))
            from pgcombine.queue_column c
            where c.queue = _queue.queue and c.combiner in ('sum', 'count')
              and pgcombine_internal.base_type(c.type::regtype)
                = any ('{real,double precision,numeric,interval}'::regtype[])
            having count(*) > 0),
        pgcombine_internal.column_list(_queue.queue, 'key'));
    execute format('comment on table %1$s is %2$L; comment on column %1$s.pgcombine_source is %3$L', _table,
        format('What each source contributes to queue %s, folded by key.', _queue.queue),
        'The source: id in pgcombine.contribution.');
    insert into pgcombine.component_table (name, queue) values (_queue.queue || '_contributions', _queue.queue);
    perform pgcombine_internal.keep_rights();
    update pgcombine.queue q set contribution = pgcombine_internal.contribution_sql(_queue.queue)
    where q.queue = _queue.queue returning q.* into _queue;
    return _queue;
end
$$;
