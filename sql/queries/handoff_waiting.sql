-- The number of writes that wait here for other servers, or of which other servers refused updates. A write counts once
-- for each such server.
select count(*)
from (select destination, token from pgcombine.handoff_hint
      union
      select destination, token from pgcombine.handoff_quarantine) waiting
