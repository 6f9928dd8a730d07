"""Hinted handoff: the same queue on several PostgreSQL servers. Each server counts each update exactly once.

**Hint first.** A write goes to one live server, its *coordinator*, in one transaction. The transaction stores a token,
the updates whose keys the coordinator holds, and a *hint* for each other server that holds keys of the write. A hint is
a copy of the write. The coordinator stores the hint until that server has the updates. After the commit, the caller
delivers the write to the other servers in parallel. The level (ONE, QUORUM, ALL or a number) is the number of
acknowledgements that the caller waits for. A coordinator acknowledges a write and stores its hints in the same commit,
so no crash separates the two. A *replayer* (``pgcombine replicas run``) at each coordinator delivers the hints that
callers could not deliver.

**Tokens.** Every write has a token, a UUID of version 7. A server applies a write in one transaction: it inserts the
token, and it appends the updates only if the token is new. So any program may send a write again, through any
coordinator. The same token with other updates is refused. A server stores tokens for the *retention* (14 days by
default). A write can be retried for half of the retention.

**States of a write at another server.** A write is *hinted* while its hint is on the coordinator. It is *delivered*
when the server has committed it and has answered. Then the hint is deleted. Updates that the server refuses for their
data go into the *quarantine* of the coordinator, with the reason. The rest of the write is delivered. In the same
transaction, the server stores which updates it refused (``handoff_refused``). Otherwise the token would hide that
updates are missing if the coordinator is lost. If the server refuses a whole write, for example because the token is
known with other updates, the whole hint is quarantined.

**States of a server.** Each coordinator has its own view (``pgcombine.destination``, kind ``server``). A server is
*up*, *suspect* after a failed delivery, or *down* after three failures in a row. After a failure one replayer at a time
tries again. The wait before each attempt doubles, up to a minute. A server is *paused* by an operator, or after a
failure that time doesn't mend: its queue is missing or defined differently, or it lost commits. ``pgcombine replicas
resume`` ends the pause. In all of these states the coordinator keeps the hints that callers don't deliver.

A server may also *need repair*: hints can't make it complete any more. For example, hints were truncated, refused as
too old, or left out at the quota, or the server lost commits. ``pgcombine replicas verify`` finds the writes that a
server lacks. ``pgcombine replicas rebuild`` makes the server complete.

Three commands empty the quarantine. ``replicas quarantine retry`` makes a new write, for the refusing server alone, of
each update or whole write. The server appends a single update only if it still lacks the update. ``replicas quarantine
drop`` deletes the updates, and ``replicas truncate`` deletes the hints for the server, too. The operator gives a reason
for a deletion, and the server then needs repair.

**Retained writes.** If a coordinator loses its disk, its hints are lost. So a server that gets a write from another one
retains the write's updates, the *payload* (``handoff_store_tokens``), if a third server may lack the write. It drops
the payload when all servers that hold the write are known to have it (:mod:`pgcombine.handoff.retained`). When a lost
server is removed (``replicas rm``), the others are marked as in need of repair. ``replicas repair``
(:mod:`pgcombine.handoff.repairing`) compares each pair of servers by tokens, forwards the writes that one of them
lacks, and removes the marks. ``tests/model/handoff.pml`` is the protocol as a model.

**Rebuild.** A server becomes a copy of another one, or of several where each holds some keys. It gets their values,
pending updates and tokens in one transaction, while writers go on. :mod:`pgcombine.handoff.rebuilding` has the order of
the steps. The rebuilt server has a new id. Without ``--force`` all coordinators must answer. With ``--force`` a rebuild
leaves out a coordinator that doesn't answer. That coordinator delivers nothing to the rebuilt server until another
rebuild runs while the coordinator answers. Observers of the server don't get the new values as changes. Exports that
the server owns deliver every value again. To add a server to a queue whose servers hold all keys, first add it to the
servers of all callers, so that coordinators make hints for it. Then rebuild the new server.

**Results of a write.** A :class:`Receipt` means that the level was reached. :class:`~pgcombine.errors.UnavailableError`
means that nothing was written. :class:`~pgcombine.errors.IndeterminateError` means that too few servers acknowledged in
time: the write was made, or may have been made. A write that was made isn't rolled back, and hints deliver it. A retry
with the same token is safe.

**Identity.** A server is known by a random id beside its name. Nothing is delivered to a standby in recovery, to
another cluster at the same address, to a copy made from a dump, or to a server that has lost a write that it had
acknowledged. A server loses writes if it is restored from an older backup, or if a lagging standby takes its place.

A coordinator may lose writes, too. Its next delivery to a server that has these writes detects the loss. That server
then marks and pauses the coordinator. The coordinator has also lost the hints of these writes. So after its rebuild,
``replicas verify`` at the other servers finds the writes that one of them lacks.

A reader detects the loss without a delivery. For each queue, a server stores the last tokens that each other server is
known to have (``handoff_delivery.witness``). The server also has the tokens of the payloads that it retains. A reader
collects these tokens from all servers. In the transaction that reads a server's values, the reader asks which of the
tokens that server knows (``handoff_known``). A server that loses a commit loses all later commits as well, so the last
tokens are enough.

**Generations.** A queue may be dropped and created again. Each server counts the replicated queues of a name that it
has dropped. This *generation* is part of the queue's shape, which every write, hint and retained payload carries. So
the new queue refuses a write of the dropped queue. A server that never had the dropped queue gets the later generation
from the first replayer that delivers to it.

**Failures.** Hints wait for a server that is down or hangs. At level ONE such a server delays a caller only if the
caller tries it as coordinator; after that attempt the caller avoids the server for a while. If a coordinator dies
before its deliveries, its replayer delivers when the coordinator is back. A caller without an answer retries through
another coordinator, which writes its own hints. If a replayer dies between the delivery and the deletion of a hint, the
next replayer delivers the hint again, and the server ignores the duplicate. When the hints for a server reach their
quota (updates, bytes), the coordinator refuses new writes. An operator can choose that the coordinator accepts these
writes without a hint instead, and marks the server as in need of repair.

**Text.** The text of a value means the same on all servers, regardless of their settings: dates are in ISO style, the
month comes before the day where the order is ambiguous, times without a zone are in UTC, and intervals, money and
floating-point numbers have one form (``pgcombine_internal.portable_text``).

**Placement.** With ``replicas=R`` of N servers each key is on R of them. The key's *slot* is the low 8 bits of the
key's hash (``handoff_hash``). The servers with the R least values of ``md5(slot/name)`` hold the slot
(``handoff_placement``). This is rendezvous hashing.

**Exports.** Each server has its own changes, so an operator chooses the one server that owns an export
(``pgcombine export own``). An epoch fences the former owner (:mod:`pgcombine.handoff.ownership`).

Hinted handoff isn't consensus. A server's values are the combined updates that have reached it. Servers agree when no
hints are left and all updates are combined. Passes on different servers combine different updates at a time, so
observers on these servers see different changes.
"""
