-- pgcombine_internal.readable_parts(queue) → array of oid
-- Returns the tables from which a pass may read the rows of a rollup's source: those that belong to the source in the
-- statement's snapshot. PostgreSQL would also read a table that was attached later. Its rows may have changed after the
-- snapshot, before it had triggers.
-- TRUNCATE and an ALTER TABLE that rewrites a table give it a new file, which seems empty to older snapshots.
-- Errors: 40001 a table of the source has a new file since the snapshot was taken.
create or replace function pgcombine_internal.readable_parts(queue text)
returns oid[]
language plpgsql stable
as $$
declare
    _parts oid[];
    _renewed regclass;
begin
    -- c is read in the statement's snapshot; pg_relation_filenode looks up the present file
    select array_agg(c.oid), min(c.oid) filter (where c.relfilenode <> pg_relation_filenode(c.oid))
    into _parts, _renewed
    from pgcombine.rollup r
    cross join lateral pgcombine_internal.descendants(r.source) d
    join pg_class c on c.oid = d
    where r.queue = readable_parts.queue;
    perform pgcombine_internal.require(_renewed is null, '40001',
        format('%s was truncated or rewritten after the snapshot of the pass was taken', _renewed),
        'run the pass again');
    return _parts;
end
$$;
