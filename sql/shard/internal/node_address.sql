-- pgcombine_internal.node_address(node) → jsonb
-- Returns the connection parameters of a node: the options of its server, and of the caller's user mapping or, without
-- one, the public mapping. The options that only postgres_fdw knows are left out.
-- Errors: PC003 no user mapping for the node has options that the caller may read.
create or replace function pgcombine_internal.node_address(node text)
returns jsonb
language plpgsql stable
as $$
declare
    _address jsonb;
begin
    select jsonb_object_agg(o.option_name, o.option_value) into _address
    from (
        select m.umoptions, s.srvoptions
        from pg_user_mappings m join pg_foreign_server s on s.oid = m.srvid
        where m.srvname = node and m.umuser in (0, current_user::regrole) and m.umoptions is not null
        order by m.umuser desc limit 1) m
    cross join lateral pg_options_to_table(m.srvoptions || m.umoptions) o
    where o.option_name !~ '^(use_remote_estimate|fdw_.*|extensions|updatable|truncatable|fetch_size|batch_size|'
        'async_capable|parallel_.*|analyze_sampling|keep_connections|password_required|use_scram_.*|scram_.*)$';
    perform pgcombine_internal.require(_address is not null, 'PC003',
        format('role "%s" has no user mapping with options for node "%s"', current_user, node),
        format('create user mapping for %I server %I options (user …, password …)', current_user, node));
    return _address;
end
$$;
