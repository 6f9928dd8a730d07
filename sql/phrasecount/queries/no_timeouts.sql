-- Lets the lock's transaction last.
select set_config(s, '0', true)
from unnest(array['idle_in_transaction_session_timeout', 'statement_timeout', 'lock_timeout']) s
