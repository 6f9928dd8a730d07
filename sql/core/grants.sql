-- Every role can read the tables that describe queues, as every role can read PostgreSQL's catalog. grant_right grants
-- all other privileges. The file grants.sql of another component has the privileges that the component adds.
grant usage on schema pgcombine, pgcombine_internal to public;
-- The next two statements keep other roles from using these trigger functions on their own tables, and from making
-- columns of pgcombine's row types and enums: an upgrade couldn't change a type that such a column has.
revoke execute on function pgcombine_internal.refuse_backlog(), pgcombine_internal.wake() from public;
do $$
declare
    _type regtype;
begin
    for _type in
        select t.oid
        from pg_type t left join pg_class c on c.oid = t.typrelid
        where t.typnamespace in ('pgcombine'::regnamespace, 'pgcombine_internal'::regnamespace)
          and t.typtype in ('c', 'e') and t.typacl is null -- not domains: searches for failing keys use them
    loop
        execute format('revoke usage on type %s from public', _type);
    end loop;
end
$$;
grant select on pgcombine.queue, pgcombine.queue_column, pgcombine.bucket, pgcombine.combiner, pgcombine.observer,
    pgcombine.hook, pgcombine.right_privilege, pgcombine.component_table, pgcombine.cluster_identity,
    pgcombine.restoring, pgcombine.schema_version, pgcombine.tick, pgcombine.worker,
    pgcombine.rights, pgcombine.oldest_snapshot, pgcombine.quarantine to public;
-- Roles insert tokens, but can't read them. enqueue_once runs with the rights of its caller, which may be a security
-- definer function, so a policy checks the right. It repeats has_right's condition for enqueue, since a call of
-- has_right would make each enqueue_once slower.
grant insert (queue, role, token) on pgcombine.token to public;
drop policy if exists shared on pgcombine.token;
create policy shared on pgcombine.token for insert
    with check (role = ''
                and (has_any_column_privilege(to_regclass(format('pgcombine.%I', queue || '_updates')),
                         'insert') is true
                     or pgcombine_internal.require_right(queue, 'enqueue') is not null)); -- raises, with a hint
drop policy if exists worked on pgcombine.token;
create policy worked on pgcombine.token using ((select pgcombine_internal.has_right(null, 'work')));
