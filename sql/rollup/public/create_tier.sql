-- pgcombine.create_tier(queue, source, key [, buckets, notify, pass_limit, buckets_per_partition, tablespaces,
--                     quarantine_after, expire_when, expire_silently, expire_every, existing, if_not_exists])
-- Creates a tier: a queue with a coarser key that another queue feeds, for example days that are fed with hours. It has
-- the value columns and the delete_when of the source. An observer of the source (tier <queue>) enqueues the updates
-- that a pass combines, with the tier's key. Keys that expire in the source stay in the tier.
--   source    a queue; it can be a tier itself
--   key       expressions over the key columns of the source, with names: 'date_trunc(''day'', hour) as day', or the
--             name of a column. They must be immutable. So for a timestamptz name the time zone, as in
--             date_trunc('day', hour at time zone 'UTC'). Types and collations follow from the expressions
--   existing  whether to enqueue the values that the source has now
--   if_not_exists  whether the same tier of the source may exist already
-- The call waits for running passes over the source, and no such pass begins until the caller's transaction ends.
-- The other options are those of create_queue. There is no max_backlog, since a full tier would make passes over the
-- source fail.
-- If a key expression is null or raises an error for an update, passes over the source fail, until the source
-- quarantines the update's key.
-- drop_queue of a tier drops the observer, too. drop_queue of the source needs force; the tier then stays an ordinary
-- queue.
-- Tables written: those of create_queue and add_observer; <queue>_updates.
-- Errors: those of create_queue; PC001 unknown source; PC002 the queue exists, or isn't this tier of the source; PC003
-- the source is the tier itself or a rollup with computed columns, or a key expression doesn't work, isn't immutable,
-- reads a value column, or gives null for an existing value; with existing, PC003 the isolation level isn't read
-- committed; 42501 the caller doesn't own the schema.
create or replace function pgcombine.create_tier(queue text, source text, key text[], buckets integer default 1,
    notify boolean default true, pass_limit integer default 1000000, buckets_per_partition integer default 1,
    tablespaces text[] default null, quarantine_after integer default 5, expire_when text default null,
    expire_silently boolean default false, expire_every interval default '10 min', existing boolean default true,
    if_not_exists boolean default false)
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _source constant pgcombine.queue := pgcombine_internal.require_queue(source);
    _observer constant text := 'tier ' || queue;
    _values constant text[] := array(
        select pgcombine_internal.column_definition(c) from pgcombine.queue_column c
        where c.queue = _source.queue and c.role = 'value' order by c.position);
    _relation constant regclass := format('pgcombine.%I', _source.queue || '_values');
    _definitions text[];
    _expressions text[];
    _value text;
    _insert text;
    _existed boolean;
    -- an alias, because PostgreSQL 15 qualifies the columns in the expressions with the table's name
    _arrived constant text := format('arrived as %I', _source.queue || '_values');
begin
    perform pgcombine_internal.require_owner();
    perform pgcombine_internal.require(queue is distinct from _source.queue, 'PC003',
        format('queue "%s" can''t be its own tier', _source.queue), 'give the tier another name');
    perform pgcombine_internal.require(_source.computed is null, 'PC003',
        format('rollup "%s" can''t feed a tier: passes compute its columns from the table (%s)', _source.queue,
            _source.computed ->> 'columns'), 'make another rollup of the table, with the tier''s key');

    -- two calls for the same tier run one after the other
    perform pgcombine_internal.claim_buckets(_source.queue, case when existing then 'create_tier with values' end);
    select array_agg(format('%I %s', k.name, k.type) || coalesce(' collate ' || k."collation", '') order by g.place),
        pgcombine_internal.fill(
            'insert into pgcombine.{updates} ({keys}, {values}) select {expressions}, {values} from ',
            jsonb_build_object('updates', quote_ident(create_tier.queue || '_updates'),
                'keys', string_agg(quote_ident(k.name), ', ' order by g.place),
                'expressions', string_agg(k.expression, ', ' order by g.place),
                'values', pgcombine_internal.column_list(_source.queue, 'value'))),
        array_agg(k.expression), min(c.name)
    into _definitions, _insert, _expressions, _value
    from unnest(key) with ordinality g (given, place)
    cross join pgcombine_internal.parsed_expression(_relation, g.given) k
    left join pgcombine.queue_column c on (c.queue, c.role) = (_source.queue, 'value') and k.reads ? c.name;
    perform pgcombine_internal.require(_value is null, 'PC003', format('column "%s" of queue "%s" holds values, so a '
        'tier can''t have it in its key', _value, _source.queue), format('use the key columns: %s',
        pgcombine_internal.column_list(_source.queue, 'key')));
    perform pgcombine_internal.require_immutable(_relation, coalesce(_expressions, '{}'));
    _existed := exists (select from pgcombine.queue q where q.queue = create_tier.queue);
    perform pgcombine.create_queue(queue, _definitions, _values, delete_when => _source.delete_when,
        buckets => buckets, notify => notify, pass_limit => pass_limit, buckets_per_partition => buckets_per_partition,
        tablespaces => tablespaces, quarantine_after => quarantine_after, expire_when => expire_when,
        expire_silently => expire_silently, expire_every => expire_every, if_not_exists => if_not_exists);
    if _existed then
        perform pgcombine_internal.require(
            exists (select from pgcombine.observer o where (o.queue, o.observer) = (_source.queue, _observer)
                    and o.statement = _insert || _arrived), 'PC002',
            format('queue "%s" exists, but isn''t this tier of queue "%s"', create_tier.queue, _source.queue),
            'drop it first, or choose another name');
        return;
    end if;

    perform pgcombine.add_observer(_source.queue, _observer, _insert || _arrived);
    if existing then -- the claim above keeps passes out
        begin
            execute _insert || _relation;
        exception when not_null_violation then
            raise exception 'a key expression of tier "%" is null for a value of queue "%"', queue,
                _source.queue using errcode = 'PC003', hint = 'use coalesce in it';
        end;
    end if;
end
$$;
