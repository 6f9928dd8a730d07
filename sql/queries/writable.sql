-- Whether the server is a standby, whether transactions are read-only by default, and the source of that default.
select pg_is_in_recovery(), setting = 'on', source from pg_settings where name = 'default_transaction_read_only'
