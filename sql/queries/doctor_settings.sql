-- The settings, each with the value that it would have in this session after RESET.
select name, reset_val from pg_settings
