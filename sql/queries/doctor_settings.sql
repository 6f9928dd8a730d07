-- The settings with which the session began.
select name, reset_val from pg_settings
