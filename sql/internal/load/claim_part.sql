-- pgcombine_internal.claim_part(load, part) → boolean
-- Returns whether the calling transaction writes this part of a token load. False: another attempt at the part has
-- committed, and the caller must roll back.
-- Call it last, after the part's updates are inserted. An attempt that runs at the same time then waits only for the
-- other's commit.
-- Tables written: pgcombine.spark_part.
-- Errors: PC030 the load has ended, or belongs to another role.
create or replace function pgcombine_internal.claim_part(load uuid, part integer)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from pgcombine.spark_load l where l.load = claim_part.load and l.ended_at is null for key share;
    perform pgcombine_internal.require(found, 'PC030', 'the load has ended', 'another attempt at it was faster, the run was given up, or it belongs to another role');
    insert into pgcombine.spark_part (load, part) values (claim_part.load, claim_part.part) on conflict do nothing;
    return found;
end
$$;
