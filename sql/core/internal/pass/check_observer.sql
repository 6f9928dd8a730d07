-- pgcombine_internal.check_observer(queue, observer [, installed])
-- Refuses an observer in SQL that reads another part of the pass than changes and arrived. The function runs EXPLAIN on
-- the statement in a query that has only these two parts, so PostgreSQL raises an error for the name of any other part.
-- The function also raises if a table or view on the search path has the name of a part, since in a pass the name would
-- mean the part.
--   installed  whether the observer exists already. Then the function refuses only the names of parts, including those
--              of former versions. The function leaves any other error, such as a table that isn't on this role's
--              search path, to the pass
-- Errors: PC003 the statement reads another part, or fails (the message has PostgreSQL's reason), or a table or view
-- has the name of a part.
create or replace function pgcombine_internal.check_observer(queue text, observer text, installed boolean default false)
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _parts constant text := '(pgcombine_)?'
        || '(updates|quarantined|quarantining|counted|folded|touched|computed|combined|removed|updated|inserted'
        || '|observer_\d+)';
    _hidden constant text := (
        select string_agg(format('%I.%I', n.nspname, c.relname), ', ' order by c.oid)
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.relname ~ ('^' || _parts || '$') and c.relname ~ '^pgcombine_' and pg_table_is_visible(c.oid));
    _statement text;
    _line text;
begin
    perform pgcombine_internal.require(_hidden is null, 'PC003',
        format('observer "%s" of queue "%s" can''t be checked: %s has the name of a part of the pass',
            observer, queue, _hidden), 'rename the table or view');
    select replace(o.statement, '{pgcombine_bucket}', '0') into strict _statement from pgcombine.observer o
        where (o.queue, o.observer) = (check_observer.queue, check_observer.observer);
    begin
        for _line in execute format(
            E'explain (costs off) with changes as (select %s), arrived as (select %s), '
                'pgcombine_alone as materialized (\n%s\n) select',
            concat_ws(', ', pgcombine_internal.column_list(queue, 'key', 'null::{type}{collate} as {name}'),
                pgcombine_internal.column_list(queue, 'value', 'null::{type}{collate} as {old}'),
                pgcombine_internal.column_list(queue, 'value', 'null::{type}{collate} as {new}')),
            pgcombine_internal.column_list(queue, form => 'null::{type}{collate} as {name}'), _statement)
        loop
            exit;
        end loop;
    exception when others then
        if not installed or sqlstate = '42P01' and sqlerrm ~ ('\y' || _parts || '\y') then
            raise exception 'observer "%" of queue "%" doesn''t work: %', observer, queue, sqlerrm
                using errcode = 'PC003', hint = case when installed
                    then format('select pgcombine.drop_observer(%L, %L) in the former version, and add one that reads '
                        'no part but changes and arrived', queue, observer)
                    else 'give one insert, update, delete or select over changes, which has the key columns, old_… '
                        'and new_…, or over arrived, which has the key and value columns' end;
        end if;
    end;
end
$$;
