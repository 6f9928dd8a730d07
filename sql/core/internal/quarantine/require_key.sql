-- pgcombine_internal.require_key(queue, key)
-- Raises unless a JSON value is an object of the queue's key columns.
-- Errors: PC004 the value isn't such an object.
create or replace function pgcombine_internal.require_key(queue text, key jsonb)
returns void
language plpgsql stable
as $$
declare
    _keys constant text[] := array(
        select c.name from pgcombine.queue_column c where c.queue = require_key.queue and c.role = 'key'
            order by c.position);
begin
    if jsonb_typeof(key) is distinct from 'object' or not key ?& _keys or key - _keys <> '{}' then
        raise exception '% is no key of queue "%"', coalesce(key::text, 'null'), require_key.queue
            using errcode = 'PC004', hint = format('give a JSON object with: %s', array_to_string(_keys, ', '));
    end if;
end
$$;
