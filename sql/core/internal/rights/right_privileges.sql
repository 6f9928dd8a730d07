-- pgcombine_internal.right_privileges(right [, subject]) → setof text
-- Returns the privileges of a right in the wording of GRANT and REVOKE: 'select on pgcombine.wc_values'. The functions
-- grant_<right> grant exactly these; policies (grants.sql) and has_right do the rest.
--   subject  a queue, or an export if the right is export. Null: the privileges that depend on neither
-- Errors: PC001 unknown queue; PC021 unknown export; PC003 unknown right.
create or replace function pgcombine_internal.right_privileges("right" text, subject text default null)
returns setof text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    _right constant text := right_privileges."right";
    _subject constant text := right_privileges.subject;
    -- only the queue's own columns: the other one holds transaction ids
    _insert constant text[] := array(select format('insert (%I)', c.name) from pgcombine.queue_column c
                                     where c.queue = _subject order by c.position);
begin
    if coalesce(not _right = any (pgcombine_internal.right_names()), true) then
        raise exception 'there is no right %', coalesce(quote_literal(_right), 'null')
            using errcode = 'PC003', hint = 'rights are ' || array_to_string(pgcombine_internal.right_names(), ', ');
    end if;
    if _subject is null then
        return query
        select p || ' on ' || o
        from (values
            ('work', '{usage}'::text[], '{sequence pgcombine.export_sequence}'::text[]),
            ('operate', '{usage}', '{sequence pgcombine.export_sequence}'),
            ('export', '{select}', '{sequence pgcombine.export_sequence}'),
            ('handoff', '{select}', '{pgcombine.handoff_server,pgcombine.handoff_queue}'),
            ('handoff', '{select (name),select (id),select (epoch),select (needs_repair)}', '{pgcombine.handoff_replica}'),
            ('handoff', '{select (slots)}', '{pgcombine.handoff_partial}'),
            ('monitor', '{select (monitor)}', '{pgcombine.every_queue}'),
            ('monitor', '{select}', '{pgcombine.destination,pgcombine.handoff,pgcombine.hint}'),
            ('replay', '{select}', '{pgcombine.handoff_server,pgcombine.handoff_queue,pgcombine.handoff_replica}'),
            ('replay', '{select}', '{pgcombine.handoff,pgcombine.hint,pgcombine.destination}'),
            ('replay', '{update (id),update (epoch),update (needs_repair),update (by_tokens),update (repairing),update (rows),update (bytes)}', '{pgcombine.handoff_replica}'),
            ('replay', '{update (measured_at),update (delivered),update (deduplicated)}', '{pgcombine.handoff_replica}'),
            ('replay', '{select,delete,update (since)}', '{pgcombine.handoff_hint}'), -- locking rows takes a right to update
            ('replay', '{select,delete}', '{pgcombine.handoff_kept}'),
            ('replay', '{select}', '{pgcombine.handoff_delivery,pgcombine.handoff_quarantine}')
        ) l ("right", privileges, objects), unnest(privileges) p, unnest(objects) o
        where l."right" = _right;
        return;
    end if;
    if _right = 'export' then
        perform pgcombine_internal.require_export(_subject);
    else
        perform pgcombine_internal.require_queue(_subject);
    end if;
    return query
    select p || ' on ' || t.relation
    from (values
        ('enqueue', '_updates', _insert, false),
        ('handoff', '_updates', _insert, false),
        ('load', '_updates', _insert, false),
        ('load', '_values', '{insert}'::text[], false),
        ('read', '_values', '{select}', false),
        ('read', '_current', '{select}', false),
        ('work', '_updates', '{select,truncate,delete}'::text[], true),
        ('work', '_values', '{select,insert,update,delete}', true),
        ('work', '_quarantine', '{select,insert}', false),
        ('work', '_quarantine_keys', '{select,insert}', false),
        ('operate', '_updates', '{insert}', false), -- a retry inserts held updates
        ('operate', '_quarantine', '{select,delete}', false),
        ('operate', '_quarantine_keys', '{select,delete}', false),
        ('export', '_exports', '{select,delete}', true)
    ) l ("right", ending, privileges, partitions)
    cross join lateral (
        select r::text as relation
        from to_regclass(format('pgcombine.%I', _subject || l.ending)) r
        where r is not null
        union
        select p.relid::text
        from pg_partition_tree(to_regclass(format('pgcombine.%I', _subject || l.ending))) p
        where l.partitions
    ) t
    cross join unnest(l.privileges) p
    where l."right" = _right
    union all
    select 'insert on ' || format('pgcombine.%I', e.export || '_exports')
    from pgcombine.export e
    where e.queue = _subject and _right in ('work', 'operate'); -- passes write entries, and a retry puts refused entries back
end
$$;
