-- pgcombine_internal.require_rows(queue) → boolean
-- Raises unless the statement's snapshot shows the rows of a rollup's source; otherwise returns true. TRUNCATE and an
-- ALTER TABLE that rewrites a table give it a new file, which seems empty to older snapshots. A pass that read it would
-- compute columns from no rows.
-- Errors: 40001 a table of the source has a new file since the snapshot was taken.
create or replace function pgcombine_internal.require_rows(queue text)
returns boolean
language plpgsql stable
as $$
declare
    _relation regclass;
begin
    -- c is read in the statement's snapshot, the function looks up the file of now
    select c.oid into _relation
    from pgcombine.rollup_part p join pg_class c on c.oid = p.part
    where p.queue = require_rows.queue and c.relfilenode <> pg_relation_filenode(c.oid);
    if found then
        raise exception '% was truncated or rewritten after the snapshot of the pass was taken', _relation
            using errcode = '40001', hint = 'run the pass again';
    end if;
    return true;
end
$$;
