-- Makes read committed the default isolation of the session's transactions, unless a pooler is between: its server
-- session would keep the setting for other clients. Behind a pooler, the client knows another process id than that of
-- its server process. Parameter: the process id that the client knows.
select set_config('default_transaction_isolation', 'read committed', false)
where pg_backend_pid() = %s and current_setting('default_transaction_isolation') <> 'read committed'
