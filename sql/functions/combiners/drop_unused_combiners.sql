-- pgcombine.drop_unused_combiners()
-- Forgets functions and aggregates that no queue combines by any more, and drops what was made to fold them.
-- Who creates a queue with one just now holds its row: that one stays.
-- Tables written: pgcombine.combiner.
create or replace function pgcombine.drop_unused_combiners()
returns void
language plpgsql
as $$
declare
    _combiner text;
    _made record;
begin
    for _combiner in
        select k.combiner from pgcombine.combiner k where k.function is not null for update skip locked
    loop
        continue when exists (select from pgcombine.queue_column c where c.combiner = _combiner);
        for _made in -- the aggregate, then the strict function below it
            select p.oid::regprocedure as name, p.prokind
            from pg_proc p
            where p.pronamespace = 'pgcombine'::regnamespace and p.proname like 'fold\_%' and p.proname like '%\_' || left(md5(_combiner), 8)
            order by p.prokind
        loop
            execute format('drop %s %s', case _made.prokind when 'a' then 'aggregate' else 'function' end, _made.name);
        end loop;
        delete from pgcombine.combiner k where k.combiner = _combiner;
    end loop;
end
$$;
