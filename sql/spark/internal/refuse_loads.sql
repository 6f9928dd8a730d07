-- pgcombine_internal.refuse_loads()
-- Raises if the current user has as many loads as it may have. Before that it gives up those of the user's loads that
-- have ended, or whose writers were silent for an hour, unless a session uses their stage.
-- Tables written: those of give_up_load.
-- Errors: PC032 too many loads.
create or replace function pgcombine_internal.refuse_loads()
returns void
language plpgsql
as $$
begin
    if pgcombine_internal.may_load() then
        return;
    end if;
    perform pgcombine_internal.give_up_load(l.load, if_idle => true)
    from pgcombine.spark_load l
    where l.role = current_user and (l.ended_at is not null or l.seen_at < now() - interval '1 hour');
    if not pgcombine_internal.may_load() then
        raise exception 'role % has % loads under way and may have no more', current_user,
            (select count(*) from pgcombine.spark_load l where l.role = current_user)
            using errcode = 'PC032', hint = format('let them end, or give them up: select pgcombine_internal.give_up_load(load) from pgcombine.spark_load. '
                'The owner may raise the limit: insert into pgcombine.spark_limit values (%L, 1000)', current_user);
    end if;
end
$$;
