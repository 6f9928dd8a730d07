-- pgcombine_internal.own_cluster() → boolean
-- Returns whether this database assigned the stored transaction ids. This is true if pgcombine.cluster_identity has
-- rows, and each row names the id of the transaction that wrote it. In a restored dump the rows name other transactions
-- than the one that wrote them. A template copy, a promoted standby, point-in-time recovery and pg_upgrade keep the
-- rows, and the ids stay valid.
create or replace function pgcombine_internal.own_cluster()
returns boolean
language plpgsql stable -- a pass calls it twice, and PL/pgSQL keeps the query's plan
as $$
begin
    return coalesce((select bool_and(l.xmin = l.id) from pgcombine.cluster_identity l), false);
end
$$;
