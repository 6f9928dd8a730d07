-- Switches timeouts off for this transaction, which holds the run's lock until the run ends.
select set_config(s, '0', true)
from unnest(array['idle_in_transaction_session_timeout', 'statement_timeout', 'lock_timeout']) s
