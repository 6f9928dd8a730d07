-- pgcombine_internal.handoff_retry_refused(token, number)
-- Tries again to append an update that this server refused, and deletes it from handoff_refused. Does nothing if there
-- is no such update there. It is for updates whose coordinator is lost (compare handoff_retry).
-- Tables written: <queue>_updates, handoff_refused.
-- Errors: those of an insert.
create or replace function pgcombine_internal.handoff_retry_refused(token uuid, number integer)
returns void
language plpgsql
as $$
declare
    _refused pgcombine.handoff_refused;
begin
    perform pgcombine_internal.portable_text();
    delete from pgcombine.handoff_refused f
    where f.token = handoff_retry_refused.token and f.number = handoff_retry_refused.number returning f.* into _refused;
    if found then
        execute pgcombine_internal.handoff_insert_sql(_refused.queue) using array[_refused.payload];
    end if;
end
$$;
