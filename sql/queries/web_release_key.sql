-- Releases a quarantined key, and returns the number of its updates. Returns no row if the key isn't quarantined, or if
-- the role can't see it.
--   {function}  retry_quarantined or drop_quarantined
-- Parameters: the queue; the key's number. The key itself isn't passed, since Python would lose digits of a number in
-- it.
select pgcombine.{function}(k.queue, k.key)
from (select q.queue, q.key from pgcombine.quarantine q where q.queue = %s and q.id = %s offset 0) k
