-- pgcombine.create_front(queue, nodes [, shards])
-- Creates a front: one name for queues of several databases, which are its shards. The hash of a key says which shard
-- has the key. Programs insert into <queue>_updates, read <queue>_current and <queue>_values, and call <queue>_enqueue,
-- enqueue and enqueue_once, as for a queue. Passes, rights and exports are set up on the nodes, for the shards' queues.
--   queue   lower-case name of at most 37 characters
--   nodes   foreign servers of postgres_fdw with the option dbname, each with a user mapping for the caller
--   shards  number of shards; null: as many as the nodes have
-- Shard 7 is the queue <queue>_07 of one of the nodes. Make the queues there before, by create_queue with equal
-- definitions and buckets => 1: a number of partitions that has a divisor above 1 in common with the number of
-- shards is refused.
-- A role that uses the front needs a user mapping for each node, with the right to enqueue or to read there, and these
-- privileges on the front: insert on pgcombine.<queue>_updates; for enqueue_once also insert on
-- pgcombine_internal.<queue>_token; select on pgcombine.<queue>_current and <queue>_values.
-- The nodes have separate snapshots, and commit one after the other: if the front's server dies in between, some have
-- committed. With enqueue_once a retry counts each update once. Otherwise write to one node in a transaction (see
-- shard_of).
-- If the front's server is PostgreSQL 15, COPY into <queue>_updates sends row after row; INSERT sends a hundred rows at
-- a time.
-- Tables written: pgcombine.front, front_shard.
-- Errors: PC002 the name is taken; PC003 an invalid name or server, a key whose hash isn't stable (such as an enum), or
-- a shard that is missing, is on two nodes, differs from the others or has keys of other shards; 42501 the caller
-- doesn't own the schema; those of postgres_fdw.
create or replace function pgcombine.create_front(queue text, nodes text[], shards integer default null)
returns void
language plpgsql
as $$
declare
    _name constant text := queue;
    _unknown constant text := (
        select coalesce(n, 'null') from unnest(nodes) n
        where not exists (select from pg_foreign_server s join pg_foreign_data_wrapper w on w.oid = s.srvfdw
                          where s.srvname = n and w.fdwname = 'postgres_fdw') limit 1);
    _taken text;
    _found jsonb := '{}'; -- for each shard that a node has: its node and definition
    _front pgcombine.front;
    _node text;
    _row record;
    _problem text;
    _hint text;
begin
    perform pgcombine_internal.require_owner();
    perform pgcombine_internal.require(_name ~ '^[a-z_][a-z0-9_]{0,36}$' and _name not like E'pg\\_%', 'PC003',
        format('invalid queue name %s', coalesce(quote_literal(_name), 'null')),
        'a to z, 0 to 9 and _, not a digit first, at most 37 characters');
    perform pgcombine_internal.require(cardinality(nodes) > 0, 'PC003', format('front "%s" has no nodes', _name),
        'name foreign servers of postgres_fdw');
    perform pgcombine_internal.require(_unknown is null, 'PC003',
        format('there is no server "%s" of postgres_fdw', _unknown), 'create server makes it');
    select t.name into _taken
    from (
        select format('pgcombine.%I', _name || s) as name
        from unnest(array['_updates', '_values', '_current', '_pending']) s
        union all select format('pgcombine_internal.%I', _name || '_token')) t
    where to_regclass(t.name) is not null;
    _taken := coalesce(_taken, (select format('pgcombine.%I', p.proname) from pg_proc p
        where p.pronamespace = 'pgcombine'::regnamespace
            and p.proname in (_name || '_enqueue', _name || '_get', _name || '_get_many') limit 1));
    perform pgcombine_internal.require(_taken is null, 'PC002',
        format('front "%s" can''t be made: %s exists', _name, _taken), 'drop it first, or choose another name');

    foreach _node in array nodes loop
        for _row in select d.* from pgcombine_internal.node_definitions(_name, _node) d loop
            perform pgcombine_internal.require(not _found ? _row.shard::text, 'PC003',
                format('shard %s of queue "%s" is on two nodes: %s and %s', _row.shard, _name,
                    _found -> _row.shard::text ->> 'node', _node), 'drop one of the two queues');
            _found := _found || jsonb_build_object(_row.shard, to_jsonb(_row) || jsonb_build_object('node', _node));
        end loop;
    end loop;

    _front.queue := _name;
    _front.shards := coalesce(shards, (select max(s::integer) + 1 from jsonb_object_keys(_found) s), 1);
    select pgcombine_internal.shard_name(_name, s) into _taken
    from generate_series(0, _front.shards - 1) s where not _found ? s::text order by s limit 1;
    perform pgcombine_internal.require(_taken is null, 'PC003', format('no node has the queue "%s"', _taken),
        format('select pgcombine.create_queue(%L, …, buckets => 1) on a node', _taken));
    _front.columns := _found #> '{0,columns}';
    _front.rules := _found #> '{0,rules}';
    _front.created_at := now();
    perform pgcombine_internal.require((_front.rules ->> 'stable_hash')::boolean, 'PC003',
        format('the keys of queue "%s" have no stable hash', pgcombine_internal.shard_name(_name, 0)),
        'enums, names of objects and nondeterministic collations can''t be keys of a front; use text');

    for _row in
        select s.shard::integer, s.found from jsonb_each(_found) s (shard, found) order by s.shard::integer
    loop
        perform pgcombine_internal.require(_row.shard < _front.shards, 'PC003',
            format('node "%s" has the queue "%s", but the front has %s shards', _row.found ->> 'node',
                pgcombine_internal.shard_name(_name, _row.shard), _front.shards), 'give the right number of shards');
        select p.problem, p.hint into _problem, _hint
        from pgcombine_internal.shard_problem(_front, _row.shard, _row.found -> 'columns', _row.found -> 'rules',
            (_row.found ->> 'partitions')::integer) p;
        perform pgcombine_internal.require(_problem is null, 'PC003', _problem, _hint);
    end loop;

    insert into pgcombine.front select _front.*;
    insert into pgcombine.front_shard (queue, shard, node)
    select _name, s.shard::integer, s.found ->> 'node' from jsonb_each(_found) s (shard, found);
    perform pgcombine_internal.make_front(_name);
    select p into _problem
    from generate_series(0, _front.shards - 1) s, pgcombine_internal.stray_key(_name, s) p where p is not null limit 1;
    perform pgcombine_internal.require(_problem is null, 'PC003', _problem,
        'give the number of shards for which its updates were written');
    if current_setting('server_version_num')::integer < 160000 then
        raise notice 'COPY into pgcombine.%_updates sends row after row on PostgreSQL 15', _name
            using hint = 'use insert, or PostgreSQL 16 or newer for the front';
    end if;
end
$$;
