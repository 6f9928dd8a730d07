-- pgcombine.bloated(queue)
-- Tells workers that run since before the schema was upgraded: those of revision 0015 asked each second what to vacuum.
-- Errors: PC008 always.
create or replace function pgcombine.bloated(queue text)
returns setof regclass
language plpgsql
as $$
begin
    raise exception 'the schema was upgraded since this worker was started'
        using errcode = 'PC008', hint = 'restart it with the newer version of pgcombine';
end
$$;
