-- pgcombine_internal.restoring() → boolean
-- Returns true if an update may have an id other than its transaction's, and raises otherwise. Other ids are allowed in
-- a copied database until post_restore has run, and in a transaction that is listed in the table pgcombine.restoring.
-- The domain own_tx calls this function.
-- Errors: those of refuse_id.
create or replace function pgcombine_internal.restoring()
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    -- the cheap test comes first, since rebucket calls this for each row that it moves
    select exists (select from pgcombine.restoring r where r.tx = txid_current_if_assigned())
        or not pgcombine_internal.own_cluster()
        or pgcombine_internal.refuse_id()
$$;
