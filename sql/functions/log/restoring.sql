-- pgcombine.restoring() → boolean
-- Whether updates may bear ids that aren't their transaction's: in a database that was copied, until it is adopted (see
-- adopt), and in a transaction that writes them anew (see the table restoring). The domain own_tx asks.
-- Runs with its owner's rights.
create or replace function pgcombine.restoring()
returns boolean
language sql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select not pgcombine.own_lineage()
        or exists (select from pgcombine.restoring r where r.tx = txid_current_if_assigned())
$$;
