-- pgcombine_internal.refuse_values() trigger, before insert, update, delete or truncate, statement level, on
--   <queue>_values; argument: the queue
-- Refuses to write values other than in a transaction that loads them: observers and pending updates would know nothing
-- of it. Passes write the partitions, so it costs them nothing. It is there for mistakes: whoever may write the
-- table can also set the variable.
-- Errors: PC014 values are written by passes.
create or replace function pgcombine_internal.refuse_values()
returns trigger
language plpgsql
as $$
begin
    if current_setting('pgcombine.initialize_' || tg_argv[0], true) is distinct from 'on' then -- see begin_initialize
        raise exception 'pgcombine.%_values is written by passes alone', tg_argv[0]
            using errcode = 'PC014',
                hint = format('enqueue the difference: insert into pgcombine.%I; pgcombine initialize loads the first '
                'values of a queue', tg_argv[0] || '_updates');
    end if;
    return null;
end
$$;
