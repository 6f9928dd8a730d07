-- pgcombine_internal.comment_changes(relation, queue, comment, others)
-- Writes the comments of a table or view of changes: those of the key columns, of old_<value> and of new_<value>.
--   relation  its name, without the schema
--   others    an object of comments by column, of the other columns
create or replace function pgcombine_internal.comment_changes(relation text, queue text, comment text, others jsonb)
returns void
language plpgsql
as $$
begin
    execute format('comment on %s pgcombine.%I is %L; ', (select case c.relkind when 'v' then 'view' else 'table' end
        from pg_class c where c.oid = format('pgcombine.%I', comment_changes.relation)::regclass),
        comment_changes.relation, comment_changes.comment) || (
        select string_agg(format('comment on column pgcombine.%I.%I is %L', comment_changes.relation, d.name,
            d.meaning), '; ')
        from (
            select c.name, format('Key: %s.', c.type) as meaning from pgcombine.queue_column c
            where c.queue = comment_changes.queue and c.role = 'key'
            union all
            select v.prefix || c.name, format(v.meaning, c.name)
            from pgcombine.queue_column c
            cross join (values ('old_', '%s before the change; null: the key had none.'),
                               ('new_', '%s after the change; null: the key has none.')) v (prefix, meaning)
            where c.queue = comment_changes.queue and c.role = 'value'
            union all
            select o.key, o.value from jsonb_each_text(comment_changes.others) o) d);
end
$$;
