-- pgcombine_internal.node_stat() → (node, queue, pending, …, problem)
-- Returns what each node of this database's fronts tells of its queues (see front_stat). If a node can't be asked, its
-- only row has the problem and no queue.
create or replace function pgcombine_internal.node_stat()
returns table (node name, queue text, pending bigint, lag_seconds double precision,
    updates_per_second_1m double precision, failing_buckets bigint, quarantined_keys bigint, last_pass_at timestamptz,
    problem text)
language plpgsql
as $$
declare
    _detail text;
begin
    for node in select distinct s.node from pgcombine.front_shard s order by 1 loop
        begin
            return query execute format('select $1, t.*, null from pgcombine_internal.%I t',
                pgcombine_internal.node_table(node)) using node;
        exception when others then
            get stacked diagnostics _detail = pg_exception_detail;
            queue := null;
            problem := concat_ws(': ', sqlerrm, nullif(_detail, ''));
            return next;
        end;
    end loop;
end
$$;
