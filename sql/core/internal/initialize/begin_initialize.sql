-- pgcombine_internal.begin_initialize(queue [, force])
-- Begins a load of values: the load enqueues no updates, and observers don't see its values. The caller then copies
-- rows into <queue>_values and calls end_initialize, all in one transaction. Until the transaction ends, no pass runs.
-- Enqueues continue; later passes combine their updates.
--   force  whether to load although the queue has values or pending updates; the loaded keys must have no value yet
-- Errors: PC001 unknown queue; PC003 the isolation level isn't read committed; PC005 the queue isn't empty, without
-- force; 42501 the caller lacks the right work; those of claim_buckets.
create or replace function pgcombine_internal.begin_initialize(queue text, force boolean default false)
returns void
language plpgsql
as $$
declare
    _there boolean;
begin
    perform pgcombine_internal.require_right(queue, 'work');
    perform pgcombine_internal.claim_buckets(queue, 'initialize');
    perform set_config('pgcombine.initialize_' || queue, 'on', true); -- refuse_values checks it
    if not force then
        execute format('select exists (select from pgcombine.%I)', queue || '_values') into _there;
        _there := _there or exists (select from pgcombine.bucket b
                                    where b.queue = begin_initialize.queue
                                      and pgcombine_internal.pending(b.queue, b.bucket));
        perform pgcombine_internal.require(not _there, 'PC005',
            format('queue "%s" isn''t empty', queue),
            'enqueue updates instead, or pass force => true to load keys that have no value yet');
    end if;
end
$$;
