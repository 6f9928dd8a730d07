-- pgcombine_internal.generate_attached(id)
-- Makes the trigger function of an attached table, <queue>_attached_<id>.
-- The function's statements are fixed, so that PostgreSQL keeps their plans. Planning them for each row would cost
-- seven times as much.
-- Names in the mapping are looked up on the search path under which the table was attached.
-- generate_attached pins its own search path. So generating expressions are printed alike under every caller's path
-- (see check_attached), and no user's function can stand in for PostgreSQL's own: make_attached calls it with the
-- owner's rights.
create or replace function pgcombine_internal.generate_attached(id integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $generate$
declare
    _a pgcombine.attachment;
    _old text;
    _new text;
    _old_rows text;
    _new_rows text;
    _columns name[];
    _expressions text[];
begin
    select a.* into strict _a from pgcombine.attachment a where a.id = generate_attached.id;
    _old := pgcombine_internal.attached_relation(_a.source, '(select old.*)');
    _new := pgcombine_internal.attached_relation(_a.source, '(select new.*)');
    _old_rows := pgcombine_internal.attached_relation(_a.source, 'pgcombine_old');
    _new_rows := pgcombine_internal.attached_relation(_a.source, 'pgcombine_new');
    if _new_rows <> 'pgcombine_new' then -- these from items compute virtual columns, so they read every column
        select array_agg(a.attname order by a.attnum),
               array_agg(case when a.attgenerated = 'v' then pg_get_expr(d.adbin, d.adrelid) end order by a.attnum)
        into _columns, _expressions
        from pg_attribute a
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where a.attrelid = _a.source and a.attnum > 0 and not a.attisdropped;
    end if;

    execute format('create or replace function pgcombine_internal.%I() returns trigger language plpgsql %s as %L',
        pgcombine_internal.attached_function(_a.id),
        'set search_path = ' || case _a.path when '{}' then ''''''
                                else (select string_agg(quote_ident(p), ', ' order by n)
                                    from unnest(_a.path) with ordinality u (p, n)) end,
        pgcombine_internal.fill($body$
#variable_conflict use_column
begin
    if tg_level = 'ROW' then
        if tg_op = 'INSERT' then
            {inserted_row};
        elsif tg_op = 'DELETE' then
            {deleted_row};
        else
            {updated_row};
        end if;
        return null;
    end if;
    if tg_op = 'TRUNCATE' and not exists (
        select from pgcombine.attachment a, pgcombine_internal.descendants(a.source) d where a.id = {id}
            and d = tg_relid)
    then
        return null; -- the table was once a partition and has kept the trigger
    end if;
    perform pgcombine_internal.check_attached({id}, tg_relid, {columns}, {expressions});
    if tg_op = 'TRUNCATE' then
        perform pgcombine_internal.enqueue_truncated({id}, tg_relid);
    elsif tg_when = 'BEFORE' then
        return null; -- the row triggers enqueue
    elsif tg_op = 'INSERT' then
        {inserted_rows};
    elsif tg_op = 'DELETE' then
        {deleted_rows};
    else
        {updated_rows};
    end if;
    return null;
end
$body$,
            jsonb_build_object(
                'id', _a.id, 'columns', quote_nullable(coalesce(_columns, _a.reads)),
                'expressions', quote_nullable(_expressions),
                'inserted_row', pgcombine_internal.attached_statement(_a, null, _new),
                'inserted_rows', pgcombine_internal.attached_statement(_a, null, _new_rows),
                'deleted_row', pgcombine_internal.attached_statement(_a, _old, null),
                'deleted_rows', pgcombine_internal.attached_statement(_a, _old_rows, null),
                'updated_row', pgcombine_internal.attached_statement(_a, _old, _new),
                'updated_rows', pgcombine_internal.attached_statement(_a, _old_rows, _new_rows))));
end
$generate$;
