-- Drops the schema with all queues and the triggers of rollups in the caller's transaction, if that has room for the
-- locks.
--   {force}  false: an error if there is a queue
do $$
begin
    if not {force} and to_regclass('pgcombine.queue') is not null then
        if exists (select from pgcombine.queue) then
            raise exception 'pgcombine has queues, so its schema was not dropped'
                using errcode = 'PC005', hint = 'Drop the queues first, or force the removal.';
        end if;
    end if;
    drop schema pgcombine, pgcombine_internal cascade;
end
$$
