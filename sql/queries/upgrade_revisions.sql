-- Runs the revisions. If objects of other roles stop a revision, the statement drops them (see drop_dependants) and
-- tries again.
do $pgcombine_upgrade$
declare
    _revisions constant text := $pgcombine_revisions${statements}$pgcombine_revisions$;
    _detail text;
begin
    loop
        begin
            execute _revisions;
            exit;
        exception when dependent_objects_still_exist or feature_not_supported then
            get stacked diagnostics _detail = pg_exception_detail;
            if not pg_temp.drop_dependants(_detail) then
                raise;
            end if;
        end;
    end loop;
end
$pgcombine_upgrade$
