-- Makes the session's transactions read committed, unless a pooler is in between: the setting would stay in the
-- pooler's session. Parameter: the id of the server process, as the client knows it.
select set_config('default_transaction_isolation', 'read committed', false)
where pg_backend_pid() = %s and current_setting('default_transaction_isolation') <> 'read committed'
