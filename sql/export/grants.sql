-- The privileges and policies of export workers and operators.
grant select on pgcombine.export_status, pgcombine.export_stat to public;
grant select, update (sweep) on pgcombine.export to public;
drop policy if exists seen on pgcombine.export;
create policy seen on pgcombine.export for select
    using (pgcombine_internal.has_right(export, 'export') or pgcombine_internal.has_right(queue, 'use'));
drop policy if exists swept on pgcombine.export;
create policy swept on pgcombine.export for update using (pgcombine_internal.has_right(export, 'export'));
grant select, update (delivered, delivered_at) on pgcombine.export_bucket to public;
drop policy if exists claimed on pgcombine.export_bucket;
create policy claimed on pgcombine.export_bucket using (pgcombine_internal.has_right(export, 'export'))
    with check (pgcombine_internal.has_right(export, 'export') and pgcombine_internal.representable(delivered_at));
grant select, insert (export, seq, entry, error), update (error, since) on pgcombine.export_quarantine to public;
drop policy if exists seen on pgcombine.export_quarantine;
create policy seen on pgcombine.export_quarantine for select
    using (pgcombine_internal.has_right(export, 'export') or pgcombine_internal.may_operate_export(export));
drop policy if exists refused on pgcombine.export_quarantine;
create policy refused on pgcombine.export_quarantine for insert
    with check (pgcombine_internal.has_right(export, 'export') and not jsonb_path_exists(entry, 'strict $.**{501}'));
drop policy if exists refused_again on pgcombine.export_quarantine;
create policy refused_again on pgcombine.export_quarantine for update
    using (pgcombine_internal.has_right(export, 'export') or pgcombine_internal.may_operate_export(export))
    with check ((pgcombine_internal.has_right(export, 'export') or pgcombine_internal.may_operate_export(export))
                and (since = '-infinity' or pgcombine_internal.representable(since))); -- see delete_flagged
grant select, update (state, ticket, failures, retry_at, reason, since) on pgcombine.destination_state to public;
drop policy if exists seen on pgcombine.destination_state;
create policy seen on pgcombine.destination_state for select
    using (kind = 'export' and (pgcombine_internal.has_right(name, 'export')
        or pgcombine_internal.may_operate_export(name)));
drop policy if exists resumed on pgcombine.destination_state;
create policy resumed on pgcombine.destination_state for update
    using (kind = 'export' and pgcombine_internal.may_operate_export(name))
    with check (kind = 'export' and pgcombine_internal.may_operate_export(name)
        and pgcombine_internal.representable(retry_at, since));
