"""Hinted handoff: the same queue on several PostgreSQL servers, which get each other's writes.

**Hint first.** A write goes to one live server, its *coordinator*. In one transaction the coordinator stores the
write's token, appends the updates of the keys that it holds, and stores a *hint* for each other server that holds keys
of the write. A hint is a copy of the write. After the commit, the caller delivers the write to the other servers in
parallel. The level (ONE, QUORUM, ALL or a number) says for how many servers of each key the caller waits. A *replayer*
(``pgcombine replicas run``) at each coordinator delivers the hints that callers could not deliver.

**Tokens.** A write has a token, a UUID of version 7. A server that has the token already doesn't append the updates
again. So a program may send a write again, through any coordinator. The same token with other updates is refused. A
server stores tokens for the *retention* (14 days by default). A write can be retried for at least half of the
retention.

**States of a write at another server.** A write is *hinted* while its hint is on the coordinator. It is *delivered*
when the server has committed it and has answered; then the hint is deleted. Updates that the server refuses for their
data go into the *quarantine* of the coordinator, with the reason, and the rest of the write is delivered. The server
stores them, too (``handoff_refused``), so that they aren't forgotten if the coordinator is lost. If the server refuses
a whole write, for example because its token is known with other updates, the coordinator quarantines the whole hint.

**States of a server.** Each coordinator records the states itself (``pgcombine.destination``, kind ``server``). A
server is *up*, *suspect* after a failed delivery, or *down* after three failures in a row. After a failure one replayer
at a time tries again, at growing intervals. A server is *paused* by an operator, or after a failure that another
attempt wouldn't mend, for example if its queue is missing or it lost commits. ``pgcombine replicas resume`` ends the
pause.

A server may also *need repair*: hints can't make it complete any more. For example, hints were truncated, refused as
too old, or left out at the quota, or the server lost commits. ``pgcombine replicas verify`` compares the tokens of two
servers. ``pgcombine replicas rebuild`` makes a server complete.

``pgcombine replicas quarantine retry`` makes new hints of quarantined updates. ``replicas quarantine drop`` deletes
quarantined updates, and ``replicas truncate`` deletes the hints for the server, too. If updates were deleted, the
server then needs repair.

**Retained writes.** If a coordinator loses its disk, its hints are lost. So a server that gets a write from another one
retains the write's updates, the *payload*, if a third server may lack the write and the quota of payloads isn't reached
(``handoff_store_tokens``). :mod:`pgcombine.handoff.retained` drops payloads that aren't needed any more. ``pgcombine
replicas repair`` (:mod:`pgcombine.handoff.repairing`) compares the servers by tokens, and forwards writes that a server
lacks. ``tests/model/handoff.pml`` is a model of the protocol.

**Rebuild.** A server becomes a copy of another one, or of several (:mod:`pgcombine.handoff.rebuilding`). Writers go on
with the other servers. The rebuilt server has a new id. A coordinator that was left out (``--force``) delivers nothing
to the rebuilt server until another rebuild includes the coordinator. Observers of the server don't get the new values
as changes. Exports that the server delivers begin again with every value.

**Results of a write.** A :class:`Receipt` means that the level was reached. :class:`~pgcombine.errors.UnavailableError`
means that nothing was written. :class:`~pgcombine.errors.IndeterminateError` means that too few servers acknowledged in
time: the write was made, or may have been made. A write that was made isn't rolled back, and hints deliver it. A retry
with the same token is safe.

**Identity.** A server is known by a random id beside its name. Nothing is delivered to a standby in recovery, to
another cluster at the same address, or to a copy made from a dump. A server loses commits if it is restored from an
older backup, or if a lagging standby takes its place. A delivery by a replayer detects that the server or the
coordinator has lost commits (:func:`pgcombine.handoff.delivery.verify_identity`), and so does a reader
(:mod:`pgcombine.handoff.reading`).

**Generations.** A queue may be dropped and created again. For each name, a server counts the replicated queues that it
has dropped. This *generation* is part of the queue's *shape*, a digest of its definition that writes carry. So the new
queue refuses a write to the dropped queue.

**Failures.** If a caller or a coordinator dies before the deliveries, the coordinator's replayer delivers once the
coordinator is up. A caller without an answer retries through another coordinator, which writes its own hints. If a
replayer dies between a delivery and the deletion of the hint, the hint is delivered again, and the server ignores the
duplicate. When the hints for a server reach their quota (updates, bytes), the coordinator refuses new writes for the
server. An operator can choose that the coordinator accepts these writes without a hint instead, and marks the server as
in need of repair.

**Text.** Values travel as text that means the same on all servers, regardless of their settings
(``pgcombine_internal.portable_text``).

**Placement.** With ``replicas=R`` of N servers each key is on R of them. The key's *slot* is the low 8 bits of the
key's hash (``handoff_hash``). Rendezvous hashing chooses the servers that hold a slot (``handoff_placement``).

**Exports.** Each server has its own changes, so an operator chooses the server that owns an export
(:mod:`pgcombine.handoff.ownership`).

Hinted handoff isn't consensus. A server's values are the combined updates that have reached it. Passes on different
servers combine the updates in different portions, so observers on these servers see different changes.
"""
