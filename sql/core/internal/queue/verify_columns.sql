-- pgcombine_internal.verify_columns(queue, parent) → problems
-- The part of verify that compares the columns of the table <queue>_updates or <queue>_values with the catalog.
create or replace function pgcombine_internal.verify_columns(queue text, parent regclass)
returns setof text
language sql stable
as $$
    select format('column "%s" of %s: it is %s, and should be %s', c.name, verify_columns.parent,
                  coalesce(pgcombine_internal.type_name(a.atttypid, a.atttypmod), 'missing'), c.type)
    from pgcombine.queue_column c
    left join pg_attribute a on a.attrelid = verify_columns.parent and a.attname = c.name and a.attnum > 0
        and not a.attisdropped
    where c.queue = verify_columns.queue
        and pgcombine_internal.type_name(a.atttypid, a.atttypmod) is distinct from c.type
      and (verify_columns.parent, a.atttypid) is distinct from (
          to_regclass(format('pgcombine.%I', c.queue || '_updates')), 'pgcombine.key_text'::regtype::oid)
$$;
