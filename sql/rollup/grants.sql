revoke execute on function pgcombine_internal.make_attached() from public; -- see sql/core/grants.sql
-- A table is attached by its owner. A right to write to its queue is needed as well.
grant select on pgcombine.attachment to public;
grant insert (queue, source, alias, mapping, columns, reads, path) on pgcombine.attachment to public;
drop policy if exists seen on pgcombine.attachment;
create policy seen on pgcombine.attachment for select using (true);
drop policy if exists kept on pgcombine.attachment;
create policy kept on pgcombine.attachment for insert
    with check (pgcombine_internal.has_right(queue, 'enqueue')
                and pgcombine_internal.acts_for((select pg_get_userbyid(c.relowner) from pg_class c where c.oid = source
                    and c.relkind in ('r', 'p', 'f'))));
