-- pgcombine_internal.export_swept(export, epoch)
-- Notes that the destination has deleted the keys from before this epoch's full state.
-- Tables written: export.
create or replace function pgcombine_internal.export_swept(export text, epoch bigint)
returns void
language sql
as $$
    update pgcombine.export e set sweep = null where e.export = export_swept.export and e.epoch = export_swept.epoch
$$;
