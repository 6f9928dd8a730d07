-- pgcombine_internal.refuse_values() trigger, before insert, update, delete or truncate, statement level, on
--   <queue>_values; argument: the queue
-- Refuses writes of values, except in a transaction that loads them, since observers wouldn't see the change. Passes
-- write the partitions, so the trigger doesn't slow them. The trigger guards only against mistakes: a role that may
-- write the table can also set the variable that begin_initialize sets.
-- Errors: PC014 the transaction doesn't load values.
create or replace function pgcombine_internal.refuse_values()
returns trigger
language plpgsql
as $$
begin
    if current_setting('pgcombine.initialize_' || tg_argv[0], true) is distinct from 'on' then
        raise exception 'pgcombine.%_values is written by passes alone', tg_argv[0]
            using errcode = 'PC014',
                hint = format('enqueue the difference: insert into pgcombine.%I; pgcombine initialize loads the first '
                'values of a queue', tg_argv[0] || '_updates');
    end if;
    return null;
end
$$;
