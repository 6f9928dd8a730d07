-- pgcombine_internal.bloated(queue)
-- Raises, so that workers of an older version stop: workers of revision 0015 called it each second to find tables to
-- vacuum.
-- Errors: PC008 always.
create or replace function pgcombine_internal.bloated(queue text)
returns setof regclass
language plpgsql
as $$
begin
    raise exception 'the schema was upgraded since this worker was started'
        using errcode = 'PC008', hint = 'restart it with the newer version of pgcombine';
end
$$;
