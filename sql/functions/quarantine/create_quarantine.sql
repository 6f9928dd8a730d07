-- pgcombine.create_quarantine(queue)
-- Makes <queue>_quarantine, which holds the updates of quarantined keys, unless it is there.
create or replace function pgcombine.create_quarantine(queue text)
returns void
language plpgsql
as $$
declare
    _columns text;
begin
    if to_regclass(format('pgcombine.%I', create_quarantine.queue || '_quarantine')) is null then
        select string_agg(format('%I %s%s', c.name, c.type, ' collate ' || c.collation), ', ' order by c.position) into _columns
        from pgcombine.queue_column c where c.queue = create_quarantine.queue;
        execute format('create table pgcombine.%I (pgcombine_hash bigint not null, %s)',
            create_quarantine.queue || '_quarantine', _columns);
        execute format('create index on pgcombine.%I (pgcombine_hash)', create_quarantine.queue || '_quarantine');
    end if;
end
$$;
