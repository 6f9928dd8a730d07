-- pgcombine.revoke_right(right, role [, queue …])
-- Takes a right away from a role, on these queues (exports, where the right is export).
--   queue  '*': on all, and on those that will be made. None: of a right that is about none, monitor or replay
-- A right that this one includes goes with it: enqueue with load. Apart from that, a privilege that another right of
-- the role needs stays: who has load may enqueue, also after enqueue was taken away.
-- Errors: PC001 unknown queue; PC021 unknown export; PC003 unknown right; 42501 the caller isn't the owner.
create or replace function pgcombine.revoke_right("right" text, role name, variadic queues text[] default '{}')
returns void
language plpgsql
as $$
declare
    _privilege text;
    _gone text[];
    _kept text[]; -- for other rights
    _other text[];
    _subject text;
begin
    perform pgcombine.require_owner();
    if '*' = any (revoke_right.queues) then
        execute format('revoke select (%I) on pgcombine.every_queue from %I', revoke_right."right", revoke_right.role);
    end if;
    for _subject in select s from pgcombine.right_subjects(revoke_right."right", revoke_right.queues) s loop
        _gone := array(select pgcombine.right_privileges(revoke_right."right", _subject));
        _kept := '{}';
        for _other in -- those with few privileges first
            select array_agg(p)
            from unnest(pgcombine.right_names()) n cross join lateral pgcombine.right_privileges(n, _subject) p
            where (n = 'export') = (revoke_right."right" = 'export') and pgcombine.holds_right(n, revoke_right.role, _subject)
            group by n order by count(*)
        loop
            if not _other <@ (_gone || _kept) then -- else it goes, or has stayed, with another one
                _kept := _kept || _other;
            end if;
        end loop;
        for _privilege in select p from unnest(_gone) p where not p = any (_kept) loop
            execute format('revoke %s from %I', _privilege, revoke_right.role);
        end loop;
        -- what is revoked of a table PostgreSQL revokes of its columns, too
        for _privilege in select k from unnest(_kept) k except select g from pgcombine.granted_privileges(revoke_right.role) g loop
            execute format('grant %s to %I', _privilege, revoke_right.role);
        end loop;
    end loop;
    if cardinality(revoke_right.queues) = 0 or not pgcombine.holds_right(revoke_right."right", revoke_right.role) then
        for _privilege in
            select p from pgcombine.right_privileges(revoke_right."right") p
            except
            select p
            from unnest(pgcombine.right_names()) n
            cross join lateral pgcombine.right_privileges(n) p
            where n <> revoke_right."right" and pgcombine.holds_right(n, revoke_right.role)
        loop
            execute format('revoke %s from %I', _privilege, revoke_right.role);
        end loop;
    end if;
end
$$;
