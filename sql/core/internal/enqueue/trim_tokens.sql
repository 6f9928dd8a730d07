-- pgcombine_internal.trim_tokens(queue) → bigint
-- Deletes tokens of enqueue_once that are older than the queue's token_retention; returns their number. A call deletes
-- at most ten thousand tokens, the oldest first. Calls at the same time delete different tokens.
-- Tables written: pgcombine.token.
create or replace function pgcombine_internal.trim_tokens(queue text)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _deleted bigint;
begin
    delete from pgcombine.token t
    where t.ctid = any (array(
        select k.ctid from pgcombine.token k
        where k.queue = trim_tokens.queue and k.role = ''
          and k.at < now() - (select q.token_retention from pgcombine.queue q where q.queue = trim_tokens.queue)
        order by k.at limit 10000 for update skip locked));
    get diagnostics _deleted = row_count;
    return _deleted;
end
$$;
