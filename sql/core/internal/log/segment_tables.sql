-- pgcombine_internal.segment_tables(queue, partition) → text[]
-- Returns the quoted names of the tables of a partition's updates, one for each segment, in the order of the segments.
create or replace function pgcombine_internal.segment_tables(queue text, partition integer)
returns text[]
language plpgsql stable -- PL/pgSQL keeps the query's plan
as $$
begin
    return (select array(select pgcombine_internal.segment_table(q.queue, segment_tables.partition, s)
                 from generate_series(0, q.segments - 1) s order by s)
    from pgcombine.queue q where q.queue = segment_tables.queue);
end
$$;
