-- Switches timeouts off for this transaction, which holds the run's lock until the run ends.
select set_config(name, '0', true) from pg_settings
where name in ('idle_in_transaction_session_timeout', 'lock_timeout', 'statement_timeout',
    'transaction_timeout') -- the last from PostgreSQL 17 on
