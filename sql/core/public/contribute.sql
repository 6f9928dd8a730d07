-- pgcombine.contribute(queue, source, updates) → bigint
-- Replaces what a source contributes to a queue, in the caller's transaction. Stores the updates, folded by key, and
-- enqueues the difference from what the source contributed before. Returns the number of enqueued updates: 0 if nothing
-- has changed.
--   source   1 to 1024 bytes that name the source, such as a document, an invoice or a day's job. A queue has one set
--            of sources, which all roles share
--   updates  as in enqueue: all that the source contributes now. An empty array takes the contribution back
-- Of two calls for one source at the same time, the second waits until the first one's transaction ends. Two
-- transactions that contribute for the same sources in different orders can deadlock (40P01), so take sources in order.
-- Each value needs a combiner with a difference: sum, count, or one for which pgcombine.combiner has one. The first
-- call for a queue makes the table <queue>_contributions (see open_contributions).
-- Runs with its owner's rights, for roles that may enqueue: they can't read or change the stored contributions.
-- Tables written: <queue>_updates, <queue>_contributions; pgcombine.contribution, queue.
-- Errors: those of enqueue on a queue, and of open_contributions and replace_contribution.
create or replace function pgcombine.contribute(queue text, source text, updates jsonb)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.open_contributions(queue);
    _names constant text[] := array(
        select c.name from pgcombine.queue_column c where c.queue = _queue.queue order by c.position);
    _keys constant bigint := (
        select count(*) from pgcombine.queue_column c where c.queue = _queue.queue and c.role = 'key');
begin
    return pgcombine_internal.replace_contribution(_queue.queue, source,
        format('jsonb_populate_recordset(row(%s)::pgcombine.%I, $2)',
            pgcombine_internal.column_list(_queue.queue, form => '{initial}::{type}'), _queue.queue || '_values'),
        pgcombine_internal.checked_updates(_queue.queue, updates, _names, _keys));
end
$$;
