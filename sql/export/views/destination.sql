-- pgcombine.destination
-- One row for each destination, which is an export or another server for which this server keeps hints. The view shows
-- no address and no password.
--   name          name of the export or the server
--   kind          export or server
--   state         up: deliveries continue. suspect: the last attempts failed, and one worker at a time tries again
--                 after retry_at. down: as suspect, but down_after attempts in a row failed. paused: no worker tries
--                 until the destination is resumed
--   failures      number of attempts that have failed in a row
--   retry_at      when the next attempt is due
--   reason        why the last attempt failed, or why it is paused; null if the reader must not see it (see
--                 may_see_reason)
--   since         when the state began
--   last_success  when an attempt last succeeded, to about a minute while the destination is up
--   last_failure  when an attempt last failed
create or replace view pgcombine.destination as
select d.name, d.kind, d.state, d.failures, d.retry_at,
       case when d.kind <> 'export' or pgcombine_internal.has_right(null, 'work') then d.reason end as reason,
       d.since, d.last_success,
       d.last_failure
from pgcombine.destination_state d;
