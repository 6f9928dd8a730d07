-- pgcombine_internal.check_attached(id, relation, columns, expressions)
-- Called by the triggers of an attached table before they enqueue. Raises if a change of the table's definition would
-- make them enqueue wrong updates.
--   relation     the table of the trigger
--   columns      the columns that the triggers read
--   expressions  for each of these columns the expression that generates it, or null; null altogether: no column is
--                virtual
-- Errors: PC003 a column was renamed or dropped; a column is generated otherwise; the table has come to inherit, or to
-- be inherited from, and lacks row triggers.
create or replace function pgcombine_internal.check_attached(id integer, relation regclass, columns name[], expressions text[])
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    _a pgcombine.attachment;
    _wrong text;
begin
    select u.name into _wrong
    from unnest(check_attached.columns) u (name)
    where not exists (select from pg_attribute a
                      where a.attrelid = check_attached.relation and a.attname = u.name and not a.attisdropped)
    limit 1;
    if found then
        select a.* into _a from pgcombine.attachment a where a.id = check_attached.id;
        raise exception 'table % has no column "%" any more, which the mapping of queue "%" reads', check_attached.relation, _wrong, _a.queue
            using errcode = 'PC003', hint = format('select pgcombine.detach(%L, %L), then attach with a mapping over the columns of now',
                                                   _a.queue, _a.source);
    end if;
    if check_attached.expressions is not null then
        select u.name into _wrong
        from unnest(check_attached.columns, check_attached.expressions) u (name, expression)
        join pg_attribute a on a.attrelid = check_attached.relation and a.attname = u.name
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum and a.attgenerated = 'v'
        where pg_get_expr(d.adbin, d.adrelid) is distinct from u.expression
        limit 1;
        if found then
            select a.* into _a from pgcombine.attachment a where a.id = check_attached.id;
            raise exception 'column "%" of table % is generated otherwise than when it was attached to queue "%"',
                    _wrong, check_attached.relation, _a.queue
                using errcode = 'PC003', hint = format('what its rows added isn''t known any more: detach(%L, %L), and fill the queue anew',
                                                       _a.queue, _a.source);
        end if;
    end if;
    if (exists (select from pg_inherits i where i.inhparent = check_attached.relation)
        or exists (select from pg_inherits i where i.inhrelid = check_attached.relation))
       and (select c.relkind from pg_class c where c.oid = check_attached.relation) <> 'p' -- a new partition inherits its parent's row triggers
    then
        select d into _wrong
        from pgcombine_internal.descendants(check_attached.relation) d
        where not exists (
            select from pg_trigger t
            where t.tgrelid = d and t.tgtype & 1 = 1
              and t.tgfoid = to_regproc(format('pgcombine_internal.%I', pgcombine_internal.attached_function(check_attached.id))))
        limit 1;
        if found then
            select a.* into _a from pgcombine.attachment a where a.id = check_attached.id;
            raise exception 'table % inherits now, or is inherited from: queue "%" would miss changes', _wrong, _a.queue
                using errcode = 'PC003', hint = format('select pgcombine.regenerate(%L) makes its triggers; '
                    'rows that came with it are not enqueued', _a.queue);
        end if;
    end if;
end
$$;
