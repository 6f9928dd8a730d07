-- pgcombine_internal.refuse_bytes(plan [, source])
-- Raises if the updates of a pass take more than 256 megabytes, which it would collect in memory several times over.
-- plan_pass cuts passes to 64 megabytes, so these are updates of a single key, or of few.
--   source  see plan_sql
-- Errors: 54000 the updates take more.
create or replace function pgcombine_internal.refuse_bytes(plan pgcombine.plan, source text default null)
returns void
language plpgsql stable
as $$
begin
    perform pgcombine_internal.require(not pgcombine_internal.takes_bytes(($1).queue, 268435456,
            coalesce(refuse_bytes.source, pgcombine_internal.log_sql(($1).queue, ($1).tables, ($1).condition))),
        '54000', format('the pending updates of a key of queue "%s" take more than 256 megabytes', ($1).queue),
        'once the key is quarantined, drop its updates, or put them back in portions');
end
$$;
