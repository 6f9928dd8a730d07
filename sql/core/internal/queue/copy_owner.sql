-- pgcombine_internal.copy_owner(source, target)
-- Gives the relation target the owner and the privileges of the relation source, and a full replica identity if source
-- has one.
create or replace function pgcombine_internal.copy_owner(source regclass, target regclass)
returns void
language plpgsql
as $$
begin
    execute (
        select concat_ws('; ',
            case when s.relowner <> t.relowner then format('alter table %s owner to %s', target,
                s.relowner::regrole) end,
            case when s.relreplident = 'f' then format('alter table %s replica identity full', target) end,
            (select string_agg(format('grant %s on %s to %s%s', a.privilege_type, target,
                                      case a.grantee when 0 then 'public' else a.grantee::regrole::text end,
                                      case when a.is_grantable then ' with grant option' end), '; ')
             from aclexplode(s.relacl) a where a.grantee <> s.relowner))
        from pg_class s, pg_class t where s.oid = source and t.oid = target);
end
$$;
