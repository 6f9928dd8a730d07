-- pgcombine_internal.handoff_slot_sql(queue) → text
-- Returns the query that computes the slot of each update of a payload (handoff_insert_sql): number, from 1, and slot,
-- from 0 to 255. The slot is the low bits of the key's hash (handoff_hash). The query's parameter is the payload.
create or replace function pgcombine_internal.handoff_slot_sql(queue text)
returns text
language sql stable
as $$
    select pgcombine_internal.fill('select u.pgcombine_number::integer as number, ({hash} & 255)::integer as slot from '
        '(select $1::text[] as pgcombine_columns) t, lateral (select u.pgcombine_number, {typed} from unnest({arrays}) '
        'with ordinality as u ({keys}, pgcombine_number)) u',
        jsonb_build_object('hash', pgcombine_internal.handoff_hash(queue),
            'typed', pgcombine_internal.column_list(queue, 'key', 'u.{name}::{type} as {name}'),
            'arrays', pgcombine_internal.column_list(queue, 'key', 't.pgcombine_columns[{number}]::text[]'),
            'keys', pgcombine_internal.column_list(queue, 'key')))
$$;
