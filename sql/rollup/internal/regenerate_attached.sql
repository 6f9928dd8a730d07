-- pgcombine_internal.regenerate_attached(queue)
-- Makes the functions of attached tables again, and those of their triggers that are missing. Forgets dropped tables.
-- The tables belong to other roles, which must not be able to stop an upgrade. So an error becomes a warning, and
-- verify names a trigger that is missing.
-- The queue's writers wait meanwhile. So the function waits for a table's lock for at most a second. Once it has waited
-- in vain, it no longer waits for other tables of the same owner.
-- Tables written: pgcombine.attachment.
-- Errors: 40P01 a deadlock.
create or replace function pgcombine_internal.regenerate_attached(queue text)
returns void
language plpgsql
as $$
declare
    _patience constant text := current_setting('lock_timeout');
    _busy oid[] := '{}'; -- owners of tables that were locked
    _attachment record;
begin
    for _attachment in
        select a.id, a.source, c.relowner as owner
        from pgcombine.attachment a left join pg_class c on c.oid = a.source
        where a.queue = regenerate_attached.queue
        order by a.id
    loop
        if _attachment.owner is null then
            perform pgcombine_internal.forget_attachment(_attachment.id);
            continue;
        end if;
        begin
            perform pgcombine_internal.generate_attached(_attachment.id);
            begin -- if it fails, the setting is undone, too
                perform set_config('lock_timeout', case when _attachment.owner = any (_busy) then '1' else '1000' end,
                    true);
                perform pgcombine_internal.attach_triggers(_attachment.id);
                perform set_config('lock_timeout', _patience, true);
            exception when lock_not_available then
                _busy := _busy || _attachment.owner;
                raise warning 'the triggers of % can''t be made, since it is locked', _attachment.source
                    using hint = 'run pgcombine db upgrade when it is not';
            end;
        exception
            when deadlock_detected then
                raise;
            when others then
                raise warning '% can''t be attached to queue "%" anew: %',
                    _attachment.source, regenerate_attached.queue, sqlerrm
                    using hint = format('detach it, or mend it: pgcombine.verify(%L) names its missing triggers',
                        regenerate_attached.queue);
        end;
    end loop;
end
$$;
