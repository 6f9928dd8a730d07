-- pgcombine_internal.portable_text()
-- Changes settings until the transaction ends, so that the text of a value means the same on every server.
-- Dates are in ISO style (an ambiguous date in the input has the month before the day). Values of timestamptz are in
-- UTC, also where the input names no zone. Intervals have PostgreSQL's default form, money has that of the locale C,
-- and floating-point numbers have all their digits.
create or replace function pgcombine_internal.portable_text()
returns void
language plpgsql
as $$
begin
    perform set_config(s.name, s.setting, true)
    from (values ('datestyle', 'ISO, MDY'), ('timezone', 'UTC'), ('intervalstyle', 'postgres'), ('lc_monetary', 'C'),
                 ('extra_float_digits', '1')) s (name, setting)
    where current_setting(s.name) <> s.setting;
end
$$;
