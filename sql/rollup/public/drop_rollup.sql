-- pgcombine.drop_rollup(rollup [, force])
-- Drops a rollup with its view, its queue and the triggers of its source.
--   force  whether to drop the rollup even if its queue feeds a tier, or another component uses its queue, an export
--          for example
-- Pending and quarantined updates don't prevent the drop.
-- Tables written: those of drop_queue.
-- Errors: PC001 unknown queue; PC003 the queue isn't a rollup; PC005, without force, the queue feeds a tier or another
-- component uses it; those of drop_queue with force.
create or replace function pgcombine.drop_rollup(rollup text, force boolean default false)
returns void
language plpgsql
as $$
declare
    _query text;
    _problem text;
    _hint text;
begin
    perform pgcombine_internal.require_owner();
    perform pgcombine_internal.require_queue(rollup);
    perform pgcombine_internal.require(exists (select from pgcombine.rollup r where r.queue = drop_rollup.rollup),
        'PC003', format('queue "%s" isn''t a rollup', drop_rollup.rollup),
        format('select pgcombine.drop_queue(%L)', drop_rollup.rollup));
    for _query in select h.query from pgcombine.hook h where h.event = 'close' and h.query not like '%drop_rollup%' loop
        for _problem, _hint in execute _query using rollup loop
            perform pgcombine_internal.require(force or _problem is null, 'PC005', _problem, _hint);
        end loop;
    end loop;
    perform pgcombine.drop_queue(rollup, force => true);
end
$$;
