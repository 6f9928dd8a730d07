-- pgcombine_internal.forget_part(queue, part)
-- Removes what a rollup has for a former part of its source: the part's row in rollup_part, and the triggers.
-- Tables written: pgcombine.rollup_part.
-- Errors: 42501 the caller lacks the rights of the part's owner.
create or replace function pgcombine_internal.forget_part(queue text, part regclass)
returns void
language plpgsql
as $$
begin
    delete from pgcombine.rollup_part p where p.queue = forget_part.queue and p.part = forget_part.part;
    execute (
        select coalesce(string_agg(format('drop trigger %I on %s', t.tgname, forget_part.part), '; '), '')
        from pg_trigger t join pg_proc p on p.oid = t.tgfoid
        where t.tgrelid = forget_part.part and t.tgparentid = 0 and p.proname = forget_part.queue || '_rollup'
          and p.pronamespace = 'pgcombine_internal'::regnamespace);
end
$$;
