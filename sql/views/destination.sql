-- pgcombine.destination: one row a destination, of an export or a server that hints are kept for. States:
--   up       deliveries go on
--   suspect  the last attempts failed; one deliverer at a time tries again, after retry_at
--   down     so many in a row failed that it isn't a blip; tried as a suspect one is, less and less often
--   paused   not tried until resumed
-- failures counts attempts in a row; reason says why the last one failed, or why it is paused; since is when the
-- state began; last_success is told to about a minute while the destination is up. Neither here nor in the table
-- below is an address or a password.
create or replace view pgcombine.destination as
select d.name, d.kind, d.state, d.failures, d.retry_at, d.reason, d.since, d.last_success, d.last_failure
from pgcombine.destination_state d;
