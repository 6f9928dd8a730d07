-- Makes the session's transactions read committed, except through a pooler, whose session would keep the setting for
-- other clients. Behind a pooler the client knows another process id than the server has. Parameter: the id of the
-- server process, as the client knows it.
select set_config('default_transaction_isolation', 'read committed', false)
where pg_backend_pid() = %s and current_setting('default_transaction_isolation') <> 'read committed'
