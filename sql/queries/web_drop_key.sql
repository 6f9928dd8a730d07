-- Drops the updates of a quarantined key, and returns their number. Returns no row if the key isn't quarantined, or if
-- the role can't see it.
-- Parameters: the queue; the key's number. The key itself isn't passed, since Python would lose digits of a number in
-- it.
select pgcombine.drop_quarantined(k.queue, k.key)
from (select q.queue, q.key from pgcombine.quarantine q where q.queue = %s and q.id = %s offset 0) k
