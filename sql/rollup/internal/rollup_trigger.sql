-- pgcombine_internal.rollup_trigger(rollup) → text
-- Returns the body of <queue>_rollup, the trigger function of a rollup's source. Except for TRUNCATE, its statements
-- are fixed, so that PostgreSQL can keep their plans. The fixed statements read no table of pgcombine, since a snapshot
-- that is older than the rollup doesn't see the rollup's rows there. They name no object by its number, since a
-- restored dump may number objects differently.
create or replace function pgcombine_internal.rollup_trigger(rollup pgcombine.rollup)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
set quote_all_identifiers = off
as $$
declare
    _old constant text := pgcombine_internal.rollup_relation(rollup, '(select old.*)');
    _new constant text := pgcombine_internal.rollup_relation(rollup, '(select new.*)');
    _old_rows text := pgcombine_internal.rollup_relation(rollup, 'pgcombine_old');
    _new_rows text := pgcombine_internal.rollup_relation(rollup, 'pgcombine_new');
    _deleted constant text := pgcombine_internal.rollup_statement(rollup, _old_rows, null);
    _moving constant text := quote_literal('pgcombine.moving_' || rollup.queue); -- see rollup_triggers
    _inserted constant text := pgcombine_internal.rollup_statement(rollup, null, _new_rows);
    _reads text;
    _images text; -- SQL for an array of texts: the columns whose equal values may look different. Null: none
begin
    if rollup.definition #>> '{computed,columns}' is not null and rollup.definition #>> '{computed,needs}' is null then
        -- leaves out rows in which no column that the rollup reads has changed
        select string_agg(quote_ident(a.attname), ', '),
               -- equal values of other types may look different, as 1.0 and 1.00 do
               ', array[' || string_agg(format('%I::text', a.attname), ', ') filter (
                   where l.collisdeterministic is false or a.atttypid <> all ('{boolean,smallint,integer,bigint,text,'
                       'varchar,date,timestamp,timestamptz,uuid}'::regtype[])) || '] as pgcombine_images'
        into _reads, _images
        from pgcombine_internal.rollup_columns(rollup) r
        join pg_attribute a on a.attrelid = rollup.source and a.attnum = r.number
        left join pg_collation l on l.oid = a.attcollation
        having bool_and(a.attgenerated <> 'v' and pgcombine_internal.type_operator(a.atttypid, 3) is not null);
        if _reads is not null then
            _old_rows := pgcombine_internal.rollup_relation(rollup, format('(select %1$s from (select %1$s%2$s from '
                'pgcombine_old except all select %1$s%2$s from pgcombine_new) as pgcombine_old)', _reads, _images));
            _new_rows := pgcombine_internal.rollup_relation(rollup, format('(select %1$s from (select %1$s%2$s from '
                'pgcombine_new except all select %1$s%2$s from pgcombine_old) as pgcombine_new)', _reads, _images));
        end if;
    end if;
    return pgcombine_internal.fill($body$
#variable_conflict use_column
begin
    if tg_op = 'TRUNCATE' then
        perform pgcombine_internal.enqueue_truncated({queue}, tg_relid, {truncated});
{moving}    elsif tg_level = 'ROW' then
        if tg_op = 'INSERT' then
            {inserted_row};
        elsif tg_op = 'DELETE' then
            {deleted_row};
        else
            {updated_row};
        end if;
    elsif tg_op = 'INSERT' then
        {inserted};
    elsif tg_op = 'DELETE' then
        {deleted};
    else
        {updated};
    end if;
    return null;
end
$body$,
        jsonb_build_object(
            'queue', quote_literal(rollup.queue),
            'truncated', quote_literal(pgcombine_internal.rollup_statement(rollup,
                pgcombine_internal.rollup_relation(rollup, 'pgcombine_old'), null)),
            'inserted_row', pgcombine_internal.rollup_statement(rollup, null, _new),
            'moving', case when rollup.definition ->> 'keep' is not null then pgcombine_internal.fill(
$moving$    elsif tg_level = 'STATEMENT' and tg_when = 'BEFORE' then
        perform set_config({moving}, concat_ws(' ', pg_trigger_depth(), current_setting({moving}, true)), true);
    elsif tg_level = 'STATEMENT' and starts_with(tg_name, '~') then
        perform set_config({moving}, regexp_replace(current_setting({moving}), '^[0-9]+ ?', ''), true);
    elsif tg_op = 'DELETE' and tg_level = 'ROW'
        and nullif(split_part(current_setting({moving}, true), ' ', 1), '')::integer >= pg_trigger_depth()
    then
        {moved_row};
$moving$, jsonb_build_object('moving', _moving, 'moved_row', pgcombine_internal.rollup_statement(rollup, _old, null,
                moved => true))) end,
            'deleted_row', pgcombine_internal.rollup_statement(rollup, _old, null),
            'updated_row', pgcombine_internal.rollup_statement(rollup, _old, _new),
            'inserted', _inserted, 'deleted', _deleted,
            'updated', pgcombine_internal.rollup_statement(rollup, _old_rows, _new_rows)));
end
$$;
