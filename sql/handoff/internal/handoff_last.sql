-- pgcombine_internal.handoff_last(name) → uuid
-- Returns the last token recorded for another server: of a write that the other server acknowledged, or of a write that
-- came from it. The other server must remember the token (handoff_remembers). Null: none is recorded, or the caller
-- lacks the right to replay.
create or replace function pgcombine_internal.handoff_last(name text)
returns uuid
language plpgsql stable
as $$
begin
    if not has_table_privilege('pgcombine.handoff_delivery', 'select') then
        return null;
    end if;
    return (select d.token from pgcombine.handoff_delivery d
            where d.destination = handoff_last.name and d.token <> '00000000-0000-0000-0000-000000000000'
            order by d.at desc limit 1);
end
$$;
