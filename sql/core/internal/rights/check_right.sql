-- pgcombine_internal.check_right(right, queues)
-- Checks the parameters of grant_right and revoke_right.
-- Errors: PC001, PC003 and 42501, as those of grant_right.
create or replace function pgcombine_internal.check_right("right" text, queues text[])
returns void
language plpgsql stable
as $$
declare
    _single boolean;
begin
    select bool_or(l.object !~ '[.]') into _single from pgcombine.right_privilege l
    where l."right" = check_right."right";
    if _single is null then
        raise exception 'there is no right %', coalesce(quote_literal(check_right."right"), 'null')
            using errcode = 'PC003',
                hint = (select 'rights are ' || string_agg(distinct l."right", ', ') from pgcombine.right_privilege l);
    elsif _single and cardinality(queues) = 0 then
        raise exception 'the right % needs the name of a queue', "right"
            using errcode = 'PC003', hint = 'give one or several names';
    elsif not _single and cardinality(queues) > 0 then
        raise exception 'the right % concerns no single queue', "right"
            using errcode = 'PC003', hint = 'leave the names of queues out';
    end if;
    perform pgcombine_internal.require_queue(q) from unnest(queues) q;
    perform pgcombine_internal.require_owner();
end
$$;
