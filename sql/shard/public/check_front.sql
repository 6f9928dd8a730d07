-- pgcombine.check_front(queue) → (node, problem)
-- Asks the nodes of a front, and returns the problems found: a node that doesn't answer, has another locale, or has
-- another version of pgcombine; a shard that is missing, is also on another node, differs from the front, refuses
-- updates although no move is known, or has keys of other shards. Reads all keys.
-- Errors: PC001 unknown front; 42501 the caller doesn't own the schema.
create or replace function pgcombine.check_front(queue text)
returns table (node text, problem text)
language plpgsql
as $$
declare
    _front constant pgcombine.front := pgcombine_internal.require_front(queue);
    _digest constant text := (select v.digest from pgcombine.schema_version v);
    _found integer[];
    _row record;
    _detail text;
begin
    perform pgcombine_internal.require_owner();
    for node in
        select distinct n::text from pgcombine.front_shard s, unnest(array[s.node, s.target, s.former]) n
        where s.queue = _front.queue and n is not null order by 1
    loop
        begin
            _found := '{}';
            for _row in
                select d.*, s.node as owner, d.digest <> _digest as differs
                from pgcombine_internal.node_definitions(_front.queue, check_front.node) d
                left join pgcombine.front_shard s on (s.queue, s.shard) = (_front.queue, d.shard)
            loop
                if _found = '{}' and _row.differs then
                    problem := 'another version of pgcombine';
                    return next;
                end if;
                if _found = '{}' and _row.locale <> pgcombine_internal.locale() then
                    problem := format('text has the locale "%s", at the front "%s": columns without a collation may be '
                        'ordered differently', _row.locale, pgcombine_internal.locale());
                    return next;
                end if;
                _found := _found || _row.shard;
                problem := case when _row.owner is distinct from check_front.node
                    then format('queue "%s" belongs to %s', pgcombine_internal.shard_name(_front.queue, _row.shard),
                        coalesce('node ' || _row.owner, 'no shard of the front'))
                    when _row.fenced and not exists (select from pgcombine.front_shard s
                        where (s.queue, s.shard) = (_front.queue, _row.shard) and s.target is not null)
                    then format('queue "%s" refuses updates, but no move is known: pgcombine queue move-shard %s %s %s',
                        pgcombine_internal.shard_name(_front.queue, _row.shard), _front.queue, _row.shard, _row.owner)
                    else coalesce((select p.problem from pgcombine_internal.shard_problem(_front, _row.shard,
                        _row.columns, _row.rules, _row.partitions) p),
                        pgcombine_internal.stray_key(_front.queue, _row.shard)) end;
                if problem is not null then
                    return next;
                end if;
            end loop;
            return query
                select s.node::text, format('queue "%s" is missing',
                    pgcombine_internal.shard_name(_front.queue, s.shard))
                from pgcombine.front_shard s
                where s.queue = _front.queue and s.node = check_front.node and s.shard <> all (_found)
                order by s.shard;
        exception when others then
            get stacked diagnostics _detail = pg_exception_detail;
            problem := concat_ws(': ', sqlerrm, nullif(_detail, ''));
            return next;
        end;
    end loop;
end
$$;
