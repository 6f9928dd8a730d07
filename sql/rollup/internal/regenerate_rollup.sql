-- pgcombine_internal.regenerate_rollup(queue)
-- If the queue is a rollup, calls generate_rollup, and makes its missing triggers.
-- The source may belong to another role, which must not be able to stop an upgrade. So errors other than those below
-- become warnings. The queue's writers wait meanwhile. So the function waits for a lock of the source for a second at
-- most.
-- Tables written: pgcombine.queue.
-- Errors: 40P01 a deadlock; 55P03 the view wasn't free within lock_timeout.
create or replace function pgcombine_internal.regenerate_rollup(queue text)
returns void
language plpgsql
as $$
declare
    _patience constant text := current_setting('lock_timeout');
    _source regclass;
begin
    select r.source into _source from pgcombine.rollup r where r.queue = regenerate_rollup.queue;
    if not found then
        return;
    end if;
    perform pgcombine_internal.generate_rollup(queue);
    begin -- an error in this block also undoes its settings
        perform set_config('lock_timeout', '1000', true);
        perform pgcombine_internal.make_rollup_triggers(queue);
        perform set_config('lock_timeout', _patience, true);
    exception when lock_not_available then
        raise warning 'the triggers of % can''t be made, since the table is locked', _source
            using hint = 'run pgcombine db upgrade when the table is free';
    end;
exception
    when deadlock_detected or lock_not_available then
        raise;
    when others then
        raise warning 'the view and the triggers of rollup "%" can''t be made again: %', queue, sqlerrm
            using hint = format('pgcombine.verify(%L) names what is wrong. Mend it, and run pgcombine db upgrade; or '
                'drop the rollup', queue);
end
$$;
