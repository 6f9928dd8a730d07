-- pgcombine_internal.start_export(export, full_state)
-- Lets this server deliver an export from now on: passes keep the changes of its queue, and the export delivers those
-- after the present ones. The caller has claimed the buckets of the queue and, if the export has any, the export's.
--   full_state  whether a full state is to be delivered, too (see begin_full_state)
-- Tables written: export_bucket; those of keep_changes.
create or replace function pgcombine_internal.start_export(export pgcombine.export, full_state boolean)
returns void
language plpgsql
as $$
begin
    perform pgcombine_internal.keep_changes(pgcombine_internal.require_queue((start_export.export).queue));
    -- fails to serialize if the snapshot has outdated sequences
    perform from pgcombine.change_bucket b where b.queue = (start_export.export).queue for update;
    insert into pgcombine.export_bucket as x (export, bucket, after)
    select (start_export.export).export, b.bucket, b.last from pgcombine.change_bucket b
    where b.queue = (start_export.export).queue
    on conflict on constraint export_bucket_pkey do update set after = excluded.after;
    if start_export.full_state then
        perform pgcombine_internal.begin_full_state(start_export.export);
    end if;
    perform pgcombine_internal.regenerate_export(start_export.export);
    perform pgcombine_internal.keep_rights();
end
$$;
