-- pgcombine_internal.warn_of_missing_index(rollup)
-- Warns if no index of a rollup's source begins with the rollup's key expressions: each pass that computes columns may
-- then scan the whole source. The hint names the index to create. If only minima and maxima are computed, their values
-- follow the key in the index, so that the rows needn't be read.
create or replace function pgcombine_internal.warn_of_missing_index(rollup text)
returns void
language plpgsql
as $$
declare
    _rollup pgcombine.rollup;
    _keys text[];
begin
    _rollup := pgcombine_internal.get_rollup(rollup);
    _keys := array(select k ->> 'expression' from jsonb_array_elements(_rollup.definition -> 'keys') k);
    if not exists (
        select from pg_index i
        where i.indrelid = _rollup.source and i.indpred is null and (
            select count(distinct d.definition) = cardinality(_keys)
            from generate_series(1, cardinality(_keys)) n
            cross join lateral (select pg_get_indexdef(i.indexrelid, n, true)) d (definition)
            where exists (select from unnest(_keys) k where replace(replace(replace(replace(k, 'pg_catalog.', ''),
                quote_ident(_rollup.definition ->> 'alias') || '.', ''), '(', ''), ')', '')
                = replace(replace(d.definition, '(', ''), ')', ''))))
    then
        raise warning 'no index of % begins with the key of rollup "%", so passes may have to read the whole table',
            _rollup.source, _rollup.queue
            using hint = format('create index on %s (%s)', _rollup.source, (select string_agg(
                case when k ~ '^[a-z_0-9]+$' then k else '(' || k || ')' end, ', ')
                from (select replace(e, quote_ident(_rollup.definition ->> 'alias') || '.', '')
                      from unnest(_keys || array(
                          select distinct substr(a ->> 'expression', 5, length(a ->> 'expression') - 5)
                          from jsonb_array_elements(_rollup.definition -> 'aggregates') a
                          where a ->> 'expression' ~ '^(min|max)[(]' and a ->> 'expression' !~ ' FILTER '
                              and _rollup.definition #>> '{computed,needs}' is not null)) e) e (k)));
    end if;
end
$$;
