-- pgcombine.portable_keys(queue) → boolean
-- Whether a key has the same hash where a dump is restored, and so stays in its bucket. An enum's label is hashed by its
-- number, which is another there: nobody knows then which bucket's mark an update is combined by. So passes delete the
-- updates of such queues (see end_pass), a row of theirs holds one update, and all that a dump holds of them is pending.
create or replace function pgcombine.portable_keys(queue text)
returns boolean
language sql stable
as $$
    select not exists (
        select from pgcombine.queue_column c join pg_type t on t.oid = c.type::regtype
        where c.queue = portable_keys.queue and c.role = 'key' and t.typcategory = 'E') -- a domain has its type's
$$;
