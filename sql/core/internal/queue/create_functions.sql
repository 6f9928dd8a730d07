-- pgcombine_internal.create_functions(queue, columns)
-- Creates or replaces the functions of a queue or of a front (see queue_functions).
-- PostgreSQL can't replace a function by one with another result. Such a function is dropped.
create or replace function pgcombine_internal.create_functions(queue text, columns jsonb)
returns void
language plpgsql
as $$
declare
    _function record;
    _create text;
begin
    for _function in select * from pgcombine_internal.queue_functions(queue, columns) loop
        _create := format('create or replace function pgcombine.%I(%s) returns %s language %s %s as %L', _function.name,
            _function.parameters, _function.result, _function.language, _function.volatility, _function.body);
        begin
            execute _create;
        exception when invalid_function_definition then
            execute format('drop function pgcombine.%I', _function.name);
            execute _create;
        end;
        execute format('comment on function pgcombine.%I is %L', _function.name, _function.comment);
    end loop;
end
$$;
