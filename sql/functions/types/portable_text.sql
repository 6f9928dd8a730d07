-- pgcombine.portable_text()
-- From here to the end of the transaction the text of a value means the same on every server, whatever their, their
-- databases' and their roles' settings are: dates in ISO style (month before day where it is ambiguous), times without
-- a zone in UTC, intervals and money as PostgreSQL writes them by default, floating point numbers with all their digits.
create or replace function pgcombine.portable_text()
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
