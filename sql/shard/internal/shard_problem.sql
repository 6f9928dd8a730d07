-- pgcombine_internal.shard_problem(front, shard, columns, rules, partitions, out problem, out hint)
-- Returns why the queue of a shard doesn't fit its front, and what to do; null: the queue fits.
--   columns, rules, partitions  see the view shard_definition
-- The partitions of the shard's tables are made by the same hash of the key as the shards. If the number of
-- partitions and that of shards had a divisor above 1 in common, some partitions of the shard would never get a key.
create or replace function pgcombine_internal.shard_problem(front pgcombine.front, shard integer, columns jsonb,
    rules jsonb, partitions integer, out problem text, out hint text)
language plpgsql immutable
as $$
declare
    _name constant text := pgcombine_internal.shard_name(front.queue, shard);
begin
    if columns <> front.columns then
        problem := format('queue "%s" has other columns than the front: %s', _name,
            pgcombine_internal.front_list(columns, form => '{name} {type}{collate}'));
        hint := 'the front has ' || pgcombine_internal.front_list(front.columns, form => '{name} {type}{collate}');
    elsif rules <> front.rules then
        problem := format('queue "%s" has other settings than the front: %s', _name, rules);
        hint := format('the front has %s', front.rules);
    elsif gcd(partitions, front.shards) > 1 then
        problem := format('queue "%s" has %s partitions, of which %s would stay empty among %s shards', _name,
            partitions, partitions - partitions / gcd(partitions, front.shards), front.shards);
        hint := 'make the queues of the shards with buckets => 1';
    end if;
end
$$;
