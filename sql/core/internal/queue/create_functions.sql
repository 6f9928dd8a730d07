-- pgcombine_internal.create_functions(queue, columns)
-- Creates or replaces the functions of a queue or of a front (see queue_functions).
-- PostgreSQL can't replace a function by one with another result. Such a function is dropped, and the new one gets its
-- privileges. If other objects depend on it, it is only renamed (see queries/set_aside.sql).
create or replace function pgcombine_internal.create_functions(queue text, columns jsonb)
returns void
language plpgsql
as $$
declare
    _function record;
    _create text;
    _signature text;
    _old pg_proc;
begin
    for _function in select * from pgcombine_internal.queue_functions(queue, columns) loop
        _create := format('create or replace function pgcombine.%I(%s) returns %s language %s %s as %L', _function.name,
            _function.parameters, _function.result, _function.language, _function.volatility, _function.body);
        _signature := format('pgcombine.%I(%s)', _function.name,
            regexp_replace(_function.parameters, ' default null(?=, |$)', '', 'g'));
        begin
            execute _create;
        exception when invalid_function_definition then
            execute format('alter function %s rename to "gone 0"', _signature);
            select p.* into _old from pg_proc p
            where p.pronamespace = 'pgcombine'::regnamespace and p.proname = 'gone 0';
            execute format('alter function %s rename to %I', _old.oid::regprocedure,
                format('gone %s %s', _old.oid, _function.name));
            execute _create;
            execute coalesce((
                select format('revoke all on function %1$s from public; ', _signature) || string_agg(
                    format('grant execute on function %s to %s', _signature,
                        case a.grantee when 0 then 'public' else a.grantee::regrole::text end), '; ')
                from aclexplode(_old.proacl) a), '');
            begin
                execute format('drop function %s', _old.oid::regprocedure);
            exception when dependent_objects_still_exist then null; -- an upgrade tells which
            end;
        end;
        execute format('comment on function %s is %L', _signature, _function.comment);
    end loop;
end
$$;
