-- pgcombine_internal.regenerate_pass(queue)
-- Regenerates the statement of a queue's passes (see pass_template and pass_parts). The function locks no table of the
-- queue, so updates can be enqueued meanwhile. It locks the queue's row in a separate statement. Under read committed
-- the next statement then sees what another session has changed.
-- Tables written: pgcombine.queue.
create or replace function pgcombine_internal.regenerate_pass(queue text)
returns void
language sql
as $$
    select from pgcombine.queue q where q.queue = regenerate_pass.queue for no key update;
    update pgcombine.queue q
    set pass = pgcombine_internal.pass_parts(q.queue),
        statement = pgcombine_internal.pass_template(q.queue)
    where q.queue = regenerate_pass.queue
$$;
