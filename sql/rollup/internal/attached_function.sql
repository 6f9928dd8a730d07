-- pgcombine_internal.attached_function(id) → name
-- Returns the name of an attached table's trigger function. The function is in schema pgcombine_internal.
create or replace function pgcombine_internal.attached_function(id integer)
returns name
language sql stable
as $$
    select a.queue || '_attached_' || a.id from pgcombine.attachment a where a.id = attached_function.id
$$;
