-- pgcombine_internal.split_amount(amount, chips) → amounts
-- Splits an amount into at most this many about equal parts, with no more decimals than the amount has.
create or replace function pgcombine_internal.split_amount(amount numeric, chips integer)
returns setof numeric
language sql immutable
as $$
    select p.part
    from generate_series(1, chips) i
    cross join lateral (
        select trunc(amount * i / chips, scale(amount)) - trunc(amount * (i - 1) / chips, scale(amount))) p (part)
    where p.part > 0
$$;
