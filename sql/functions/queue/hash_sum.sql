-- pgcombine.hash_sum(a, b) → text
-- The expression that adds two expressions of 64 bits as unsigned integers that wrap around: SQL's + fails instead.
create or replace function pgcombine.hash_sum(a text, b text)
returns text
language sql immutable
as $$
    select replace(replace(
        '((((({a} >> 32) & 4294967295) + (({b} >> 32) & 4294967295) + ((({a} & 4294967295) + ({b} & 4294967295)) >> 32)) << 32)'
        ' | ((({a} & 4294967295) + ({b} & 4294967295)) & 4294967295))', '{a}', a), '{b}', b)
$$;
