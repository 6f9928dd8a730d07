-- Makes the session's transactions read committed, unless a pooler is between: the setting would stay with its session.
-- Parameter: the number of the server's process, as the client was told it.
select set_config('default_transaction_isolation', 'read committed', false)
where pg_backend_pid() = %s and current_setting('default_transaction_isolation') <> 'read committed'
