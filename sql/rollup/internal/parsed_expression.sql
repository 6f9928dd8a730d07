-- pgcombine_internal.parsed_expression(source, given) → (name, expression, type, collation, tree, reads)
-- Lets PostgreSQL parse an output column of a select from a table, such as 'sum(tokens) as tokens'.
--   expression  the text that PostgreSQL prints for the expression (see printed_sql). The columns of the table may be
--               qualified by the table's name
--   tree        PostgreSQL's parse tree of the whole select, as text
--   reads       the numbers of the table's columns that the expression reads, by name
--   type        for a domain the type below it: a queue with the domain would run the checks of the domain's owner with
--               the rights of whoever uses the queue
-- Errors: PC003 the text isn't one output column over this table alone, has a subquery or no name, reads a whole row or
-- a system column, has a type that is or contains a type of another role, or calls a function that another role could
-- replace.
create or replace function pgcombine_internal.parsed_expression(source regclass, given text, out name text,
    out expression text, out type text, out "collation" text, out tree text, out reads jsonb)
language plpgsql
as $$
declare
    _alias constant name := (select c.relname from pg_class c where c.oid = source);
    _problem text;
    _mark constant text := 'pgcombine_' || md5(given);
    _view regclass;
begin
    begin
        execute format(E'create temporary view pgcombine_parsed as select %s\n from %s as %I', given, source, _alias);
    exception when others then
        raise exception '% can''t be a column over %: %', quote_nullable(given), source, sqlerrm
            using errcode = 'PC003', hint = 'write it as in a select list: ''sum(tokens) as tokens''';
    end;
    _view := 'pg_temp.pgcombine_parsed'::regclass;
    select min(a.attname), min(pgcombine_internal.type_name(t.oid,
               case when t.oid = a.atttypid then a.atttypmod else -1 end)),
           min(case when a.attcollation <> t.typcollation
               then concat(nullif(l.collnamespace::regnamespace::text, 'pg_catalog') || '.', quote_ident(l.collname))
               end),
           case when count(*) <> 1 then format('it has %s output columns', count(*))
                when min(a.attname) = '?column?' then 'it has no name' end
    into name, type, "collation", _problem
    from pg_attribute a
    join pg_type t on t.oid = pgcombine_internal.base_type(a.atttypid)
    left join pg_collation l on l.oid = a.attcollation
    where a.attrelid = _view and a.attnum > 0;
    select r.ev_action::text into tree from pg_rewrite r where r.ev_class = _view;
    if _problem is null and (tree ~ '[{]SUBLINK ' or exists (
        select from pg_rewrite r
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
            and d.refclassid = 'pg_class'::regclass and d.refobjid not in (source, _view)
        where r.ev_class = _view))
    then
        _problem := 'it has a subquery or reads another table';
    elsif _problem is null and exists (
        select from pg_rewrite r
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
        left join pg_operator o on d.refclassid = 'pg_operator'::regclass and o.oid = d.refobjid
        join pg_proc p on p.oid = coalesce(o.oprcode, case d.refclassid when 'pg_proc'::regclass then d.refobjid end)
        join pg_roles w on w.oid = p.proowner
        where r.ev_class = _view and not w.rolsuper and not pg_has_role(w.oid, current_user, 'member'))
    then
        _problem := 'it calls a function of another role, which could replace it';
    elsif _problem is null and exists (
        with recursive part (type) as (
            select pgcombine_internal.base_type(a.atttypid)
            from pg_attribute a where a.attrelid = _view and a.attnum > 0
            union
            select unnest(array[t.typelem, t.typbasetype, g.rngsubtype, m.rngsubtype, a.atttypid])
            from part p
            join pg_type t on t.oid = p.type
            left join pg_range g on g.rngtypid = t.oid
            left join pg_range m on m.rngmultitypid = t.oid
            left join pg_attribute a on a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
        )
        select from part p
        join pg_type t on t.oid = p.type
        join pg_roles w on w.oid = t.typowner
        where not w.rolsuper and not pg_has_role(w.oid, current_user, 'member'))
    then
        _problem := 'its type is or contains a type of another role, which could add checks and casts';
    elsif _problem is null and tree ~ ':varattno (0|-[0-9]+) ' then
        _problem := 'it reads a whole row or a system column';
    elsif _problem is null and tree ~ ':(distinctClause|setOperations) [({]|:hasTargetSRFs true|[{]WINDOWFUNC ' then
        _problem := 'it makes more of the select list than one value';
    end if;

    select coalesce(jsonb_object_agg(a.attname, a.attnum), '{}') into reads
    from pg_rewrite r
    join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
        and d.refobjid = source and d.refobjsubid > 0
    join pg_attribute a on a.attrelid = source and a.attnum = d.refobjsubid
    where r.ev_class = _view;
    if _problem is null then
        -- a column name that no expression contains shows where the expression ends
        execute format('alter view pg_temp.pgcombine_parsed rename column %I to %I', name, _mark);
        expression := ltrim(substr(split_part(pgcombine_internal.printed_sql(_view), ' AS ' || _mark, 1),
            length(' SELECT') + 1), E' \n');
    end if;

    drop view pg_temp.pgcombine_parsed;
    perform pgcombine_internal.require(_problem is null, 'PC003',
        format('%s can''t be a column over %s: %s', quote_nullable(given), source, _problem),
        case when _problem like '%another table' then
                'make a rollup by the foreign key, and join the other table when you read it'
             when _problem like '%a type of another role%' then 'cast it to another type, or let a role that you trust '
                'own the type and the functions that it calls'
             when _problem like '%no name' then format('name it: ''%s as …''', given)
             else 'give one expression over columns of the table, as in a select list' end);
end
$$;
