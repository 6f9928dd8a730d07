"""Export queues deliver the changes of passes to other systems. No change is lost, and each key's changes keep order.

*States.* When a pass commits, each of its changes is a *waiting* entry of ``<export>_exports``. An entry is *claimed*,
with its bucket, while a worker's transaction delivers it, and it is deleted when that transaction commits. An entry is
*quarantined* if the destination refuses it for its data, until an operator retries or drops it. If the export
compacts, the delivery of a later entry of the key also ends the quarantine. The destination is ``up``, ``suspect``,
``down`` or ``paused``.

*Guarantees.* Each change is written as one entry, in the pass's transaction. The pass draws sequence numbers while it
holds the bucket's lock, so a key's numbers grow in the order in which its passes commit. The commit of an entry is on
disk before the entry is delivered, so no delivered number is drawn again after a crash. Delivery is at least once. With
a destination that compares sequence numbers, delivery is effectively once.

*Failures.* If a worker dies before its commit, its claim ends with its connection, and its entries wait again. If the
worker is still alive and delivers late, a destination that compares sequence numbers ignores the late delivery. After a
failure of the destination, one worker at a time tries again with back-off. In the exporters ``postgres`` and
``webhook``, a timeout ends a delivery that hangs. A worker without waiting entries sleeps, and the next pass with a
change wakes the worker (:mod:`pgcombine.runtime.wakeup`).

The modules: ``entries`` defines entries and exporters. ``postgres``, ``files``, ``webhook`` and ``functions`` are
exporters. ``signing`` and ``cloudevents`` make parts of the webhook's requests. ``delivery`` delivers a batch.
``verifying`` compares a table with the queue's values. ``queue`` and ``worker`` have the public classes. The states of
destinations, which hinted handoff uses as well, are in :mod:`pgcombine.runtime.destinations`.
"""
