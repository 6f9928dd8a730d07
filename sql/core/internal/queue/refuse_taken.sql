-- pgcombine_internal.refuse_taken(queue)
-- Raises if something else has one of the names that a new queue needs.
-- Errors: PC002 a relation or a function has the name.
create or replace function pgcombine_internal.refuse_taken(queue text)
returns void
language plpgsql stable
as $$
begin
    perform pgcombine_internal.require(n.free, 'PC002', n.problem, n.hint)
    from (
        select to_regclass(format('pgcombine.%I', queue || s)) is null as free,
            format('queue "%s" is being dropped', queue) as problem,
               format('call pgcombine.drop_in_portions(%L) ends that', queue) as hint
        from unnest(array['_updates_dropped', '_values_dropped']) s
        union all
        select to_regclass(format('pgcombine.%I', queue || s)) is null,
            format('queue "%s" can''t be made: a relation named %s exists', queue, queue || s),
               'choose another name'
        from unnest(array['_updates', '_values', '_pending', '_current', '_quarantine', '_quarantine_keys']) s
        union all
        select not exists (select from pg_proc p where p.pronamespace = 'pgcombine'::regnamespace
            and p.proname = queue || '_enqueue'),
               format('queue "%s" can''t be made: a function pgcombine.%s_enqueue exists', queue, queue),
               'choose another name') n;
end
$$;
