-- pgcombine.handoff_last(name) → uuid
-- The last token, as far as was noted, that a server acknowledged to this one, or that came from it: it must remember
-- it (handoff_remembers). Null: there is none, or the caller may not replay: a token is for who writes it.
create or replace function pgcombine.handoff_last(name text)
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
