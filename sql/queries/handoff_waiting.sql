-- The number of writes that wait here for other servers, or that they refused.
select count(*)
from (select destination, token from pgcombine.handoff_hint
      union
      select destination, token from pgcombine.handoff_quarantine) waiting
