-- pgcombine_internal.right_subjects(right, subjects) → setof text
-- Returns the names of the queues, or of a component's objects, on which a right is to be granted or revoked: the given
-- names, or those of all existing objects if a name is '*'.
-- Errors: PC003 there is no such right, a name is given for a right that is on no object, or no name is given for a
-- right that needs one.
create or replace function pgcombine_internal.right_subjects("right" text, subjects text[])
returns setof text
language plpgsql stable
as $$
declare
    _kind pgcombine.right_kind;
    _named constant boolean := cardinality(right_subjects.subjects) > 0;
    _problem text;
    _hint text;
begin
    select k.* into _kind from pgcombine.right_kind k where k."right" = right_subjects."right";
    select r.problem, r.hint into _problem, _hint
    from (values
        (found, 'there is no right ' || coalesce(quote_literal(right_subjects."right"), 'null'),
         (select 'rights are ' || string_agg(k."right", ', ' order by k."right") from pgcombine.right_kind k)),
        (coalesce(_kind.subject <> '', not _named), format('the right %s concerns no single queue', _kind."right"),
         'leave the names of queues out'),
        (_named or coalesce(_kind.optional, true), format('the right %s needs the name of %s', _kind."right",
            case when _kind.subject ~ '^[aeiou]' then 'an ' else 'a ' end || _kind.subject),
         'give one or several names, or ''*'' for all, including later ones')) r (holds, problem, hint)
    where r.holds is not true;
    if found then
        raise exception using errcode = 'PC003', message = _problem, hint = _hint;
    end if;
    if '*' = any (right_subjects.subjects) then
        return query execute format('select s.%1$I from pgcombine.%1$I s', _kind.subject);
    else
        return query select unnest(right_subjects.subjects);
    end if;
end
$$;
