-- Makes the updates of a quarantined key pending again, by its number; no row: it isn't quarantined, or the role
-- can't see it. The key doesn't leave the server, so that a number in it keeps all its digits.
select pgcombine.retry_quarantined(k.queue, k.key)
from (select q.queue, q.key from pgcombine.quarantine q where q.queue = %s and q.id = %s offset 0) k
