-- pgcombine.destination
-- One row a destination: that of an export, or another server for which this one keeps hints. It shows no
-- address and no password.
--   state         up: deliveries go on. suspect: the last attempts failed; one worker at a time tries again after
--                 retry_at. down: down_after attempts in a row failed; it is tried like a suspect one, less and less
--                 often. paused: it isn't tried until it is resumed
--   failures      number of attempts that failed in a row
--   reason        why the last attempt failed, or why it is paused; null: the reader may not see it (see
--                 may_see_reason)
--   since         when the state began
--   last_success  to about a minute while the destination is up
create or replace view pgcombine.destination as
select d.name, d.kind, d.state, d.failures, d.retry_at,
       case when pgcombine_internal.may_see_reason(d.kind, d.name) then d.reason end as reason, d.since, d.last_success,
       d.last_failure
from pgcombine.destination_state d;
