-- pgcombine_internal.drop_unused_combiners()
-- Deletes user-defined combiners that no queue uses any more, and drops the routines that were made to fold by them.
-- A transaction that creates a queue with a combiner has locked the combiner's row: such a row is skipped.
-- Tables written: pgcombine.combiner.
create or replace function pgcombine_internal.drop_unused_combiners()
returns void
language plpgsql
as $$
declare
    _combiner text;
begin
    for _combiner in
        select k.combiner from pgcombine.combiner k where k.function is not null for update skip locked
    loop
        continue when exists (select from pgcombine.queue_column c where c.combiner = _combiner);
        execute ( -- the aggregate first, since it depends on the strict function
            select coalesce(string_agg(format('drop routine %s', p.oid::regprocedure), '; ' order by p.prokind), '')
            from pg_proc p
            where p.pronamespace = 'pgcombine_internal'::regnamespace and p.proname like 'fold\_%' and p.proname like '%\_' || left(md5(_combiner), 8));
        delete from pgcombine.combiner k where k.combiner = _combiner;
    end loop;
end
$$;
