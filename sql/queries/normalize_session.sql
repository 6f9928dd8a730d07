-- Makes read committed the default isolation of the session's transactions. Does nothing behind a pooler, whose server
-- session would keep the setting for other clients: there the process id that the client knows isn't that of the server
-- process. Parameter: the process id that the client knows.
select set_config('default_transaction_isolation', 'read committed', false)
where pg_backend_pid() = %s and current_setting('default_transaction_isolation') <> 'read committed'
