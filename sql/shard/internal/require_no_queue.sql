-- pgcombine_internal.require_no_queue(queue)
-- Raises an error if this database has a queue of this name.
-- Errors: PC002 it has one.
create or replace function pgcombine_internal.require_no_queue(queue text)
returns void
language plpgsql stable
as $$
begin
    perform pgcombine_internal.require(
        not exists (select from pgcombine.queue q where q.queue = require_no_queue.queue), 'PC002',
        format('database "%s" already has a queue "%s"', current_database(), require_no_queue.queue),
        'find out which node has the values of the shard before you drop a queue; or move the shard to another node');
end
$$;
