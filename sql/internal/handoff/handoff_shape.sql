-- pgcombine_internal.handoff_shape(queue) → uuid
-- Returns a digest of the parts of a queue's definition on which the meaning of updates depends. Servers on which
-- updates mean the same have the same digest. Null: there is no such queue.
create or replace function pgcombine_internal.handoff_shape(queue text)
returns uuid
language plpgsql stable
as $$
begin
    return (select md5(string_agg(concat_ws('|', c.role, quote_ident(c.name), case c.type when 'pgcombine.key_text' then 'text' else c.type end, c."collation", c.combiner, c.ordered_by), ',' order by c.position))::uuid
    from pgcombine.queue_column c
    where c.queue = handoff_shape.queue);
end
$$;
