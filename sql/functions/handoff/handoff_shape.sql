-- pgcombine.handoff_shape(queue) → uuid
-- A digest of a queue's definition as far as updates depend on it: equal on servers where they mean the same.
-- Null: there is no such queue.
create or replace function pgcombine.handoff_shape(queue text)
returns uuid
language plpgsql stable
as $$
begin
    return (select md5(string_agg(concat_ws('|', c.role, quote_ident(c.name), case c.type when 'pgcombine.key_text' then 'text' else c.type end, c."collation", c.combiner, c.ordered_by), ',' order by c.position))::uuid
    from pgcombine.queue_column c
    where c.queue = handoff_shape.queue);
end
$$;
