-- pgcombine_internal.make_rollup_views(rollup, definition)
-- Makes the views <rollup>_source, with the columns of the source that the rollup reads, and <rollup>_expressions, with
-- the rollup's expressions. PostgreSQL follows renames in them.
-- In <rollup>_expressions, a string that no expression contains (the mark) stands before and after each expression, so
-- that get_rollup finds the expressions in the view's text.
--   definition  see analyze_rollup
-- Tables written: pgcombine.rollup.
create or replace function pgcombine_internal.make_rollup_views(rollup text, definition jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp -- the expressions are printed for it
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _rollup pgcombine.rollup;
    _mark constant text := md5(definition ->> 'texts');
    _columns text;
    _places jsonb;
begin
    select r.* into _rollup from pgcombine.rollup r where r.queue = make_rollup_views.rollup;
    execute format('create view pgcombine.%I as select %s from %s', _rollup.queue || '_source', concat_ws(', ', (
            select string_agg(quote_ident(k), ', ' order by n::integer)
            from jsonb_each_text(definition -> 'reads') r (k, n)), 'tableoid as pgcombine_part'), _rollup.source);
    execute format('comment on view pgcombine.%I is %L', _rollup.queue || '_source',
        format('The columns of %s that the rollup %s reads.', _rollup.source, _rollup.queue));
    select string_agg(format('(select row(%1$L::text, %2$s, %1$L::text) is null from %3$s) as %4$s', _mark,
               e.expression, e.relation, e.place), ', ' order by e.number), jsonb_agg(e.place order by e.number)
    into _columns, _places
    from (
        select t.number, t.text, format('pgcombine.%I as %I', _rollup.queue || '_source', definition ->> 'alias'),
               'e' || t.number
        from jsonb_array_elements_text(definition -> 'texts') with ordinality t (text, number)
        union all
        select 10000 + g.place, g.expression, format('%s as pgcombine_row', _rollup.source), 'g' || g.place
        from pgcombine_internal.generated_columns(_rollup) g) e (number, expression, relation, place);
    execute format('create view pgcombine_internal.%I as select %s', _rollup.queue || '_expressions', _columns);
    execute format('comment on view pgcombine_internal.%I is %L', _rollup.queue || '_expressions',
        format('The expressions of the rollup %s (see get_rollup). Nobody reads its row.', _rollup.queue));
    update pgcombine.rollup r
    set definition = r.definition || jsonb_build_object('mark', _mark, 'places', _places)
    where r.queue = _rollup.queue;
end
$$;
