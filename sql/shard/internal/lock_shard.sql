-- pgcombine_internal.lock_shard(queue, shard)
-- Waits until all transactions that wrote to a shard through the front have ended, and keeps others waiting until the
-- caller's transaction ends. Reads go on.
create or replace function pgcombine_internal.lock_shard(queue text, shard integer)
returns void
language plpgsql
as $$
begin
    execute pgcombine_internal.fill(
        'lock table pgcombine_internal.{queue}_token_{shard}, pgcombine_internal.{queue}_updates_{shard}
            in exclusive mode',
        jsonb_build_object('queue', queue, 'shard', lpad(shard::text, 2, '0')));
end
$$;
