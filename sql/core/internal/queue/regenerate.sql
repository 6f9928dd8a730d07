-- pgcombine_internal.regenerate(queue)
-- Recreates a queue's generated objects: the tables of its quarantine and the bounds of its values if they are
-- missing, the statements of its passes and contributions, its views, the comments on tables and views, its functions,
-- its triggers, and what components generate (see the table hook). It also updates the stored type names of the
-- columns, and checks the observers in SQL. An upgrade calls the function for each queue, so that existing queues get
-- the new definitions.
-- Tables written: pgcombine.queue, queue_column; those of components.
-- Errors: PC001 unknown queue; PC003 see check_observer; 42501 the caller doesn't own the queue.
create or replace function pgcombine_internal.regenerate(queue text)
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
    _updates constant text := format('pgcombine.%I', _queue.queue || '_updates');
    _query text;
begin
    perform pgcombine_internal.refresh_types(_queue.queue);
    perform pgcombine_internal.create_quarantine(_queue.queue);
    perform pgcombine_internal.bound_values(_queue.queue);
    perform pgcombine_internal.check_observer(o.queue, o.observer, installed => true)
    from pgcombine.observer o where o.queue = _queue.queue and o.language = 'sql';
    perform pgcombine_internal.regenerate_pass(_queue.queue);
    update pgcombine.queue q set contribution = pgcombine_internal.contribution_sql(_queue.queue)
    where q.queue = _queue.queue and q.contribution is not null;

    perform pgcombine_internal.replace_view(_queue.queue || '_pending', pgcombine_internal.pending_sql(_queue.queue));
    perform pgcombine_internal.replace_view(_queue.queue || '_current', pgcombine_internal.current_sql(_queue.queue));
    perform pgcombine_internal.describe_queue(_queue.queue);

    if _queue.max_backlog is not null then
        execute format('create or replace trigger pgcombine_limit before insert on %s
                        for each statement execute function pgcombine_internal.refuse_backlog(%L)',
            _updates, _queue.queue);
    end if;
    execute format('create or replace trigger pgcombine_wake before insert on %s
                    for each statement execute function pgcombine_internal.wake(%s)',
        _updates, case when _queue.notify then quote_literal(_queue.queue) end);
    execute format('create or replace trigger pgcombine_append_only before update or delete or truncate on %s
                    for each statement execute function pgcombine_internal.refuse_change(%L)', _updates, _queue.queue);
    execute format('create or replace trigger pgcombine_values before insert or update or delete or truncate on '
        'pgcombine.%I
                    for each statement execute function pgcombine_internal.refuse_values(%L)',
        _queue.queue || '_values', _queue.queue);
    for _query in select h.query from pgcombine.hook h where h.event = 'regenerate' loop
        execute _query using _queue.queue;
    end loop;
    perform pgcombine_internal.create_functions(_queue.queue, pgcombine_internal.columns_of(_queue.queue));
    perform pgcombine_internal.keep_rights();
end
$$;
