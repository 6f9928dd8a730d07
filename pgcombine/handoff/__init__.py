"""Hinted handoff: the same queue on several PostgreSQL servers. Each server counts each update exactly once.

**Hint first.** A write goes to one live server, its *coordinator*, in one transaction. The transaction stores a token,
the updates, and a *hint* for each other server that holds the keys. A hint is a copy of the updates that is kept until
that server has them. Then the write is delivered to the other servers in parallel. The level (ONE, QUORUM, ALL or a
number) is the number of acknowledgements that the caller waits for. A coordinator acknowledges a write and stores its
hints in the same commit, so no crash separates the two. A *replayer* (``pgcombine replicas run``) at each coordinator
delivers the hints that callers could not deliver.

**Tokens.** Every write has a token, a UUID of version 7. A server applies a write in one transaction: it inserts the
token, and the updates only if the token is new. So any program may send a write again, through any coordinator. The
same token with other updates is refused. Tokens are kept for the *retention* (14 days). A write may be retried for half
of it.

**States of a write at another server.** A write is *hinted* while its hint is on the coordinator. It is *delivered*
when the server has acknowledged its commit, and then the hint is deleted. Updates that the server refuses for their
data go into the *quarantine*, with the reason. The rest of the write is delivered. The server stores in the same
transaction what it refused (``handoff_refused``), since the token alone doesn't say that updates are missing, and the
coordinator may be lost. A hint that can't be delivered, though others can, is quarantined as a whole.

**States of a server.** Each coordinator has its own view (``pgcombine.destination``, kind ``server``). A server is
*up*. It is *suspect* after a failed delivery, and *down* after three. One replayer at a time then tries again, after a
while that doubles up to a minute. A server is *paused* by an operator, or for a fault that time doesn't mend (its queue
is defined differently, it lost commits), until ``pgcombine replicas resume``. Hints are kept in all of these states. A
server may also *need repair*: hints can't make it complete any more, since hints were truncated, refused as too old, or
left out at the quota by choice, or since the server lost commits. ``pgcombine replicas verify`` finds the writes that a
server lacks. ``pgcombine replicas rebuild`` makes it complete. ``replicas quarantine retry`` makes a new write, for
that server alone, of each update in the quarantine. The server appends it only if it still lacks the update. ``replicas
quarantine drop`` drops them for a reason, and the server then needs repair.

**Retained writes.** A coordinator may be lost with its disk, and its hints with it. So a server that gets a write from
another one retains its payload (``handoff_store_tokens``) until all servers that hold the write are known to have it
(:mod:`pgcombine.handoff.retained`). When a lost server is removed (``replicas rm``), the others are marked: they need
repair. ``replicas repair`` (:mod:`pgcombine.handoff.repairing`) compares each pair of them by tokens, forwards what one
lacks, and removes the marks. ``tests/model/handoff.pml`` is the protocol as a model.

**Rebuild.** A server becomes a copy of another one, or of several where each holds some keys. It gets their values,
pending updates and tokens in one transaction, while writers go on. :mod:`pgcombine.handoff.rebuilding` has the order of
the steps. The rebuilt server has a new id. All coordinators must answer. By force a coordinator may be left out: it
delivers nothing to the server, until that is rebuilt again while the coordinator answers. Observers of the server don't
get the new values as changes. Exports that it owns deliver everything anew. To add a server where all hold all keys:
first let all callers name it, which makes hints for it, then rebuild it.

**Results of a write.** A :class:`Receipt` means that the level was reached. :class:`~pgcombine.errors.UnavailableError`
means that nothing was written. :class:`~pgcombine.errors.IndeterminateError` means that too few servers acknowledged in
time: the write was made, or may have been made. It isn't rolled back, and hints deliver it. Retrying with its token is
safe.

**Identity.** A server is known by a random id beside its name. Nothing is delivered to a standby in recovery, to
another cluster at the same address, to a copy made from a dump, or to a server that has forgotten a write that it had
acknowledged (it was restored from an older backup, or a lagging standby took over). A coordinator, too, may have
forgotten writes. The coordinator's next delivery to a server that has them shows it. That server then marks and pauses
the coordinator. The coordinator has forgotten its hints as well. So after its rebuild, ``replicas verify`` at the other
servers finds the writes that one of them lacks. A reader needs no delivery to find it out. Each server notes tokens
that another one is known to have, the last of each queue (``handoff_delivery.witness``), and has the payloads that it
keeps. A reader asks for the last of both (``handoff_known``) in the transaction that reads the values. A lost commit
takes all later ones along, so the last ones are enough.

**Generations.** A queue may be dropped and created again. The servers count how many replicated queues of the name they
have dropped. This *generation* is part of the queue's shape, which every write, hint and retained payload carries. So a
write of a dropped queue doesn't fit its successor. A server that had no part in the dropped queue takes over the later
generation from the first replayer.

**Failures.** A server that is down or hangs costs callers at level ONE only the first attempt, and gets hints. If a
coordinator dies before its deliveries, its replayer delivers when the coordinator is back. A caller without an answer
retries through another coordinator, which writes its own hints. If a replayer dies between delivery and deletion, the
next one delivers again, and the token's status is *duplicate*. When the hints for a server reach their quota (rows,
bytes), writes are refused before they are acknowledged. By choice they are taken without a hint instead, and the server
is marked.

**Text** means the same on all servers, whatever their settings are: dates in ISO style, month before day where it is
ambiguous, times without a zone in UTC (``pgcombine_internal.portable_text``).

**Placement.** With ``replicas=R`` of N servers a key is on R of them: those with the least md5 of ``slot/name``. The
slot is the low 8 bits of the key's hash (``handoff_placement``, ``handoff_hash``). This is rendezvous
hashing.

**Exports.** Each server has its own changes, so one *configured* server owns an export (``pgcombine export own``). An
epoch fences the former owner (:mod:`pgcombine.handoff.ownership`).

This isn't consensus. A server's values are the combined updates that have reached it. Servers agree when no hints are
left. The boundaries of passes differ between servers, and so do the changes that observers see.
"""
