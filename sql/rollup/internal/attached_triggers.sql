-- pgcombine_internal.attached_triggers(id) → (relation, name, own, definition, state)
-- Lists the triggers that an attached table needs, and the state of each.
--   own         whether attach_triggers makes it; a partition's row triggers come with its parent's
--   definition  the text between the trigger's name and its function in create trigger
--   state       null: present and enabled; otherwise 'missing' or 'disabled'
-- A table without partitions and inheritance has statement triggers with transition tables. These are wrong for a table
-- with partitions: they miss a row that a MERGE moves, and a statement that names a partition doesn't fire them. The
-- same holds for a table that inherits or is inherited from. Such tables have row triggers.
-- TRUNCATE has statement triggers only. They don't extend to partitions, so each table has its own, which takes back
-- the rows of this table alone.
create or replace function pgcombine_internal.attached_triggers(id integer)
returns table (relation regclass, name name, own boolean, definition text, state text)
language sql stable
as $$
    with attachment as (
        select a.source, 'pgcombine_' || a.queue || '_' as prefix, f.oid as function,
               exists (select from pg_inherits i where a.source in (i.inhparent, i.inhrelid))
               or s.relkind = 'p'
               or exists (select from pg_trigger t where t.tgrelid = a.source and t.tgfoid = f.oid
                   and t.tgtype & 1 = 1) as by_row
        from pgcombine.attachment a
        join pg_class s on s.oid = a.source
        left join pg_proc f on f.pronamespace = 'pgcombine_internal'::regnamespace
            and f.proname = pgcombine_internal.attached_function(a.id)
        where a.id = attached_triggers.id
    ), wanted as (
        select a.source as relation, a.prefix || e.event as name, true as own, a.function,
               format('after %s on %s referencing%s%s for each statement', e.event, a.source,
                   case when e.event <> 'insert' then ' old table as pgcombine_old' end,
                   case when e.event <> 'delete' then ' new table as pgcombine_new' end) as definition
        from attachment a, unnest(array['insert', 'update', 'delete']) e (event)
        where not a.by_row
        union all
        select d, a.prefix || e.event, d = a.source or not c.relispartition, a.function,
               format('after %s on %s for each row', e.event, d)
        from attachment a, pgcombine_internal.descendants(a.source) d join pg_class c on c.oid = d,
             unnest(array['insert', 'update', 'delete']) e (event)
        where a.by_row
        union all
        select a.source, a.prefix || 'check', true, a.function,
               format('before insert or update or delete on %s for each statement', a.source)
        from attachment a
        where a.by_row
        union all
        select d, a.prefix || 'truncate', true, a.function, format('before truncate on %s for each statement', d)
        from attachment a, pgcombine_internal.descendants(a.source) d join pg_class c on c.oid = d
        where c.relkind in ('r', 'p')
    )
    select w.relation, w.name::name, w.own, w.definition,
           case when t.oid is null then 'missing' when t.tgenabled not in ('O', 'A') then 'disabled' end
    from wanted w
    left join pg_trigger t on t.tgrelid = w.relation and t.tgname = w.name::name and t.tgfoid = w.function
        and (t.tgtype & 1 = 1) = (w.definition like '%for each row')
    order by w.own desc, w.relation <> (select a.source from attachment a), w.relation, w.name
$$;
