-- pgcombine.drop_front(queue)
-- Drops a front. The queues of its shards stay on the nodes, with all updates and values.
-- Tables written: pgcombine.front, front_shard.
-- Errors: PC001 unknown front; PC005 a shard is being moved; 42501 the caller doesn't own the schema; 2BP01
-- another object depends on its tables.
create or replace function pgcombine.drop_front(queue text)
returns void
language plpgsql
as $$
declare
    _front constant pgcombine.front := pgcombine_internal.require_front(queue);
begin
    perform pgcombine_internal.require_owner();
    perform pgcombine_internal.require(not exists (
        select from pgcombine.front_shard s
        where s.queue = _front.queue and (s.target is not null or s.former is not null)), 'PC005',
        format('a shard of front "%s" is being moved', _front.queue),
        'end the move by pgcombine queue move-shard; select * from pgcombine.front_shard shows it');
    execute (
        select string_agg(format('drop function %s', p.oid::regprocedure), '; ')
        from pg_proc p
        where p.pronamespace = 'pgcombine'::regnamespace
              and p.proname in (_front.queue || '_enqueue', _front.queue || '_get', _front.queue || '_get_many')
           or p.pronamespace = 'pgcombine_internal'::regnamespace and p.proname = _front.queue || '_shard_number');
    execute pgcombine_internal.fill(
        'drop table pgcombine.{queue}_updates, pgcombine.{queue}_values, pgcombine.{queue}_current,
            pgcombine_internal.{queue}_token', jsonb_build_object('queue', _front.queue));
    delete from pgcombine.front f where f.queue = _front.queue;
    execute coalesce((
        select string_agg(format('drop foreign table %s', t.ftrelid::regclass), '; ')
        from pg_foreign_table t join pg_foreign_server s on s.oid = t.ftserver
        where t.ftrelid = to_regclass('pgcombine_internal.' || pgcombine_internal.node_table(s.srvname))
          and s.srvname not in (select n.node from pgcombine.front_shard n)), '');
end
$$;
