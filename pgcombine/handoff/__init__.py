"""Hinted handoff: the same queue on several PostgreSQL servers, each update counted exactly once on each of them.

**Hint first.** A write goes to one live server, its *home*, as one transaction: a token, the updates, and a *hint* for
each other server that holds the keys: the updates once more, kept until that server has them. Then they are delivered
to the others in parallel, and the level (ONE, QUORUM, ALL or a number) says how many acknowledgements the caller waits
for. There is no moment between acknowledgement and hint: whoever dies, whenever, the hints of what was acknowledged
are on its home. A *replayer* (``pgcombine handoff run``) at each home delivers what callers could not.

**Tokens.** Every write has one, a UUID of version 7. A server applies a write in one transaction: the token is
inserted, and the updates go in only if it is new; so a write may be sent again, by anybody, through any home. The same
token with other updates is refused. Tokens are kept for the *retention* (14 days), longer than a write may be retried
(half of it).

**States of a write at another server**: *hinted* (on the home, on its way or waiting) → *delivered* (its commit was
acknowledged, the hint is deleted). Instead, a part that the server refuses for its data goes to the *quarantine*, with
the reason; the rest of the write is delivered.

**States of a server**, as each home sees it (``pgcombine.destination``, kind ``server``): *up*; *suspect* after a
failed delivery; *down* after three, tried again by one replayer at a time, after a while that doubles up to a minute;
*paused*, by hand or because time won't mend it (its queue is defined otherwise, it lost commits), until
``pgcombine hints resume``. Hints are kept in all of them. Beside its state a server may *need repair*: hints can't make
it complete any more, since they were truncated, refused as too old, left out at the quota by choice, or since it lost
commits. ``pgcombine hints verify`` tells which writes a server lacks, ``pgcombine handoff rebuild`` makes it complete.
What is in the quarantine is retried (``hints retry``: each update a write of its own, for that server alone) or dropped
for a reason (``hints drop``), which then needs repair as well.

**Rebuild.** A server becomes a copy of another one, or of several where each holds some keys: their values, pending
updates and tokens, in one transaction, while writers go on (:mod:`pgcombine.handoff.rebuilding` tells in which order).
It is another server then, with a new id; homes that didn't answer meanwhile deliver nothing to it until it is rebuilt
once more with them. Its observers aren't told of the new values; exports that it owns deliver everything anew. To add a
server where all hold all keys: let all callers name it, which makes hints for it, then rebuild it.

**What callers are told.** A :class:`Receipt`: the level was reached. :class:`~pgcombine.errors.Unavailable`: nothing
was written, certainly. :class:`~pgcombine.errors.Indeterminate`: it was written, or may have been, and too few servers
acknowledged in time; it isn't rolled back: hints deliver it. Retrying with its token is safe.

**Who is who.** A server is known by a random id beside its name. Not delivered to: a standby in recovery, another
cluster behind the address, a copy made from a dump, one that has forgotten a write that it had acknowledged (it was
restored from an older backup, or a lagging standby took over). A home that has forgotten what came from it is marked
and paused at the server that has it, as the home's next delivery there shows; the hints that it had are forgotten, too:
after its rebuild, ``hints verify`` at the others tells whether one lacks them.

**Failures.** A server that is down or hangs costs callers at level ONE nothing but the first attempt; it gets hints. A
home that dies before its deliveries: its replayer delivers when it is back; a caller who got no answer retries through
another home, which writes hints of its own. A replayer that dies between delivery and deletion: the next one delivers
again, the token says *duplicate*. At the quota of hints for a server (rows, bytes) writes are refused before they are
acknowledged, or, by choice, taken without a hint, and the server is marked.

**Text** means the same on all servers, whatever their settings are: dates in ISO style, month before day where it is
ambiguous, times without a zone in UTC (``pgcombine.portable_text``).

**Placement.** With ``replicas=R`` of N servers a key is on R of them: those with the least md5 of ``slot/name``, slot
being the low 8 bits of the key's hash (``pgcombine.handoff_placement``, ``handoff_hash``).

**Exports.** Each server has changes of its own, so one *configured* server owns an export (``pgcombine export own``);
an epoch fences the former owner (:mod:`pgcombine.handoff.ownership`).

What it isn't: consensus. A server's values are what it has combined of what has reached it; servers agree when no hints
are left. Pass boundaries, and so the changes that observers see, differ between servers.
"""

from __future__ import annotations

from pgcombine.handoff.reading import Reading
from pgcombine.handoff.replayer import Replayer
from pgcombine.handoff.replicated import Receipt, ReplicatedQueue

__all__ = ["Reading", "Receipt", "Replayer", "ReplicatedQueue"]
