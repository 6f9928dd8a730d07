-- The number of writes that wait here for other servers, or that these refused. A write counts for each such server.
select count(*)
from (select destination, token from pgcombine.handoff_hint
      union
      select destination, token from pgcombine.handoff_quarantine) waiting
