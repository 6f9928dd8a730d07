-- pgcombine_internal.end_move(queue, shard)
-- Records that a move has ended or was cancelled.
-- Tables written: pgcombine.front_shard.
create or replace function pgcombine_internal.end_move(queue text, shard integer)
returns void
language sql
as $$
    update pgcombine.front_shard s set target = null, former = null
    where (s.queue, s.shard) = (end_move.queue, end_move.shard)
$$;
