-- pgcombine_internal.check_queue(queue, tablespaces, pass_limit, max_backlog, quarantine_after)
-- Raises unless a queue can have this name and these options of create_queue.
-- Errors: PC003 an invalid name or option.
create or replace function pgcombine_internal.check_queue(queue text, tablespaces text[], pass_limit integer,
    max_backlog bigint,
    quarantine_after integer)
returns void
language plpgsql stable
as $$
declare
    _unknown constant text := (select coalesce(t, 'null') from unnest(tablespaces) t
                               where not exists (select from pg_tablespace s where s.spcname = t
                                   and t <> 'pg_global') limit 1);
begin
    perform pgcombine_internal.require(r.holds, 'PC003', r.problem, r.hint)
    from (values
        (queue ~ '^[a-z_][a-z0-9_]{0,39}$', 'invalid queue name ' || coalesce(quote_literal(queue), 'null'),
         'a to z, 0 to 9 and _, not a digit first, at most 40 characters'),
        (queue not like 'pg\_%' and queue not in ('queue', 'bucket', 'combiner', 'repeatable', 'schema'),
         format('queue name "%s" is reserved', queue), 'choose another name'),
        (pass_limit >= 1, 'invalid pass limit: ' || coalesce(pass_limit::text, 'null'),
            'give at least 1; thousands are sensible'),
        (coalesce(max_backlog >= 1, true), 'invalid maximum backlog: ' || max_backlog,
            'give at least 1, or null for no limit'),
        (quarantine_after >= 1, 'invalid quarantine_after: ' || coalesce(quarantine_after::text, 'null'),
         'give at least 1: the number of failed passes in a row'),
        (_unknown is null, format('there is no tablespace "%s"', _unknown),
         (select 'tablespaces: ' || string_agg(s.spcname, ', ' order by s.spcname) from pg_tablespace s
             where s.spcname <> 'pg_global'))
        ) r (holds, problem, hint);
end
$$;
