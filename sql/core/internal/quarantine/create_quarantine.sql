-- pgcombine_internal.create_quarantine(queue)
-- Creates the tables of a queue's quarantine, unless they exist.
--   <queue>_quarantine       the quarantined updates; pgcombine_key is the number of their key
--   <queue>_quarantine_keys  the keys that passes leave out, compared by the equality of their types
create or replace function pgcombine_internal.create_quarantine(queue text)
returns void
language plpgsql
as $$
begin
    if to_regclass(format('pgcombine.%I', create_quarantine.queue || '_quarantine')) is null then
        execute format('create table pgcombine.%I (pgcombine_key bigint not null, %s)',
            create_quarantine.queue || '_quarantine',
            pgcombine_internal.column_list(create_quarantine.queue, form => '{name} {type}{collate}'));
        execute format('create index on pgcombine.%I (pgcombine_key)', create_quarantine.queue || '_quarantine');
    end if;
    if to_regclass(format('pgcombine.%I', create_quarantine.queue || '_quarantine_keys')) is null then
        execute format('create table pgcombine.%I (%s, pgcombine_key bigint not null unique, primary key (%s))',
            create_quarantine.queue || '_quarantine_keys', pgcombine_internal.column_list(create_quarantine.queue,
                'key', '{name} {type}{collate}'),
            pgcombine_internal.column_list(create_quarantine.queue, 'key'));
    end if;
end
$$;
