-- pgcombine.wake() trigger, statement level, on <queue>_updates; argument: the queue
-- Notifies a sleeping worker that updates came. It can't know their buckets (a transition table would halve the
-- rate of COPY), so it notifies on the queue's channel, which stands for all its buckets.
create or replace function pgcombine.wake()
returns trigger
language plpgsql
as $$
begin
    if current_setting('pgcombine.quiet', true) is distinct from 'on' and pgcombine.asleep(tg_argv[0]) then
        perform pg_notify(pgcombine.channel(tg_argv[0]), '');
    end if;
    return null;
end
$$;
