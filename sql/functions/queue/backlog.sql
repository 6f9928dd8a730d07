-- pgcombine.backlog(queue) → bigint
-- How many updates are pending, exactly.
-- Errors: PC001 unknown queue.
create or replace function pgcombine.backlog(queue text)
returns bigint
language plpgsql stable
as $$
declare
    _backlog bigint;
begin
    perform pgcombine.require_queue(backlog.queue);
    execute format('select count(*) from pgcombine.%I', backlog.queue || '_pending') into _backlog;
    return _backlog;
end
$$;
