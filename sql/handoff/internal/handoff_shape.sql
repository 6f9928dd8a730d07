-- pgcombine_internal.handoff_shape(queue) → uuid
-- Returns the shape of a queue: a digest of its columns with their roles, types, collations and combiners, combined
-- with the queue's generation (handoff_generation) in the last 32 bits. Servers on which a queue has the same shape can
-- exchange its updates. Null: there is no such queue.
create or replace function pgcombine_internal.handoff_shape(queue text)
returns uuid
language plpgsql stable
as $$
begin
    return (select (left(d.digest, 24)
        || lpad(to_hex(('x' || right(d.digest, 8))::bit(32)::integer # coalesce(g.generation, 0)), 8, '0'))::uuid
            from (select md5(string_agg(concat_ws('|', c.role, quote_ident(c.name), case c.type
                when 'pgcombine.key_text' then 'text' else c.type end,
                                                  c."collation", c.combiner, c.ordered_by), ','
                                                      order by c.position)) as digest
                  from pgcombine.queue_column c
                  where c.queue = handoff_shape.queue) d
            left join pgcombine.handoff_queue g on g.queue = handoff_shape.queue);
end
$$;
