-- Makes the updates of a quarantined key, given by its number, pending again. Returns no row if the key isn't
-- quarantined, or if the role can't see it. The query reads the key itself, since a number in a JSON key would lose
-- digits in Python.
select pgcombine.retry_quarantined(k.queue, k.key)
from (select q.queue, q.key from pgcombine.quarantine q where q.queue = %s and q.id = %s offset 0) k
