-- pgcombine_internal.may_replay() → boolean
-- Returns whether the caller of a function that runs with its owner's rights may replay (grant_replay).
create or replace function pgcombine_internal.may_replay()
returns boolean
language sql stable
as $$
    select has_table_privilege(pgcombine_internal.caller(), 'pgcombine.handoff_hint', 'delete')
$$;
