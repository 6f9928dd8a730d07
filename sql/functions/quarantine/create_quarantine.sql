-- pgcombine.create_quarantine(queue)
-- Makes the tables of a queue's quarantine, unless they are there.
--   <queue>_quarantine       the updates that are held; pgcombine_key is the number of their key
--   <queue>_quarantine_keys  the keys that passes leave out, compared by their types' own equality. The columns are
--                            named by their position (pgcombine_0), so that no name is one of the updates' as well
create or replace function pgcombine.create_quarantine(queue text)
returns void
language plpgsql
as $$
declare
    _columns text;
    _keys text;
    _names text;
begin
    select string_agg(format('%I %s%s', c.name, c.type, ' collate ' || c.collation), ', ' order by c.position),
           string_agg(format('pgcombine_%s %s%s', c.position, c.type, ' collate ' || c.collation), ', ' order by c.position)
               filter (where c.role = 'key'),
           string_agg(format('pgcombine_%s', c.position), ', ' order by c.position) filter (where c.role = 'key')
    into _columns, _keys, _names
    from pgcombine.queue_column c where c.queue = create_quarantine.queue;
    if to_regclass(format('pgcombine.%I', create_quarantine.queue || '_quarantine')) is null then
        execute format('create table pgcombine.%I (pgcombine_key bigint not null, %s)', create_quarantine.queue || '_quarantine', _columns);
        execute format('create index on pgcombine.%I (pgcombine_key)', create_quarantine.queue || '_quarantine');
    end if;
    if to_regclass(format('pgcombine.%I', create_quarantine.queue || '_quarantine_keys')) is null then
        execute format('create table pgcombine.%I (%s, pgcombine_key bigint not null unique, primary key (%s))',
            create_quarantine.queue || '_quarantine_keys', _keys, _names);
    end if;
end
$$;
