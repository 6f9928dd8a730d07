-- pgcombine_internal.rollup_triggers(queue) → (relation, name, own, definition, state)
-- Lists the triggers that a rollup's source needs, and the state of each.
--   own         whether make_rollup_triggers makes the trigger. PostgreSQL makes a partition's row triggers with those
--               of its parent
--   definition  the text between the trigger's name and its function in create trigger
--   state       null: present and "enable always" (see make_rollup_triggers); otherwise 'missing' or 'disabled'
-- A source with partitions or inheritance, and one that a subscription writes, has row triggers: a statement that names
-- a partition doesn't fire the statement triggers of its parent, and logical replication fires no statement triggers
-- for the changes that it applies. Another source has statement triggers with transition tables, unless it already has
-- row triggers.
-- For TRUNCATE, each table and each partition has a statement trigger (see enqueue_truncated). Its name begins with ~,
-- so that it fires after triggers whose names begin with a letter, which may delete rows.
-- An UPDATE that moves a row to another partition fires a row trigger for DELETE and one for INSERT. A rollup that
-- keeps rows must not keep the deleted one. So two statement triggers of each table with partitions note that an UPDATE
-- runs at their depth of triggers. If one statement both updates and deletes, by WITH or MERGE, no deleted row is kept.
-- A role that sets the variable of the two triggers itself can also delete rows that aren't kept.
-- Logical replication doesn't fire the two: a moved row that meets the condition is kept, and counts twice.
create or replace function pgcombine_internal.rollup_triggers(queue text)
returns table (relation regclass, name name, own boolean, definition text, state text)
language sql stable
as $$
    with rollup as (
        select r.source, r.queue, f.oid as function, r.keep is not null as keeps,
               exists (select from pg_inherits i where r.source in (i.inhparent, i.inhrelid))
               or s.relkind = 'p'
               or exists (select from pg_subscription_rel l where l.srrelid = r.source)
               or exists (select from pg_trigger t where t.tgrelid = r.source and t.tgfoid = f.oid
                   and t.tgtype & 1 = 1) as by_row
        from pgcombine.rollup r
        join pg_class s on s.oid = r.source
        left join pg_proc f on f.pronamespace = 'pgcombine_internal'::regnamespace and f.proname = r.queue || '_rollup'
        where r.queue = rollup_triggers.queue
    ), wanted as (
        select r.source as relation, format('pgcombine_%s_%s', r.queue, e.event) as name, true as own, r.function,
               format('after %s on %s referencing%s%s for each statement', e.event, r.source,
                   case when e.event <> 'insert' then ' old table as pgcombine_old' end,
                   case when e.event <> 'delete' then ' new table as pgcombine_new' end) as definition
        from rollup r, unnest(array['insert', 'update', 'delete']) e (event)
        where not r.by_row
        union all
        select d, format('pgcombine_%s_%s', r.queue, e.event), d = r.source or not c.relispartition, r.function,
               format('after %s on %s for each row', e.event, d)
        from rollup r, pgcombine_internal.descendants(r.source) d join pg_class c on c.oid = d,
             unnest(array['insert', 'update', 'delete']) e (event)
        where r.by_row
        union all
        select d, format('~pgcombine_%s_truncate', r.queue), true, r.function,
               format('before truncate on %s for each statement', d)
        from rollup r, pgcombine_internal.descendants(r.source) d join pg_class c on c.oid = d
        where c.relkind in ('r', 'p')
        union all
        select d, format('~pgcombine_%s_%s', r.queue, e.name), true, r.function,
               format('%s update on %s for each statement', e.moment, d)
        from rollup r, pgcombine_internal.descendants(r.source) d join pg_class c on c.oid = d,
             (values ('moving', 'before'), ('moved', 'after')) e (name, moment)
        where r.keeps and c.relkind = 'p'
    )
    select w.relation, w.name::name, w.own, w.definition,
           case when t.oid is null then 'missing' when t.tgenabled <> 'A' then 'disabled' end
    from wanted w
    left join pg_trigger t on t.tgrelid = w.relation and t.tgname = w.name::name and t.tgfoid = w.function
        and (t.tgtype & 1 = 1) = (w.definition like '%for each row')
    order by w.own desc, w.relation <> (select r.source from rollup r), w.relation, w.name
$$;
