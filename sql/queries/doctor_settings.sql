-- The settings, each with the value to which the statement reset sets it in this session.
select name, reset_val from pg_settings
