"""Export queues deliver the changes of passes to other systems.

*States.* A pass writes its changes into the table ``<queue>_changes``, once for all exports and the feed of the queue
(:mod:`pgcombine.feed`). An export stores for each bucket of the queue up to which change it has delivered them. A
worker *claims* a bucket. In one transaction the worker delivers the next changes, as *entries*, and stores how far it
is. An entry that the destination refuses for its data is *quarantined*, with the later ones of its key, until an
operator retries or drops it. A change of the export's owner ends the quarantine, too. The destination is ``up``,
``suspect``, ``down`` or ``paused``.

*Guarantees.* Each change is one entry, which the pass's transaction writes. The pass draws the entries' numbers while
it holds its bucket of the queue, so a key's numbers grow in the order in which its passes commit. The commit of a
change is on disk before the entry is delivered, so that no crash takes back a delivered entry. Delivery is at least
once. A destination that compares sequence numbers ignores what was delivered before.

*Failures.* If a worker dies before its commit, its claim ends with its connection, and its entries wait again. After a
failure of the destination, one worker at a time tries again, at growing intervals. A worker without waiting entries
sleeps, and the next pass with a change wakes the worker (:mod:`pgcombine.runtime.wakeup`).

The modules: ``entries`` defines entries and exporters. ``postgres``, ``files``, ``webhook`` and ``functions`` are
exporters. ``signing`` and ``cloudevents`` make parts of the webhook's requests. ``delivery`` delivers a batch.
``verifying`` compares a table with the queue's values, and makes workers deliver keys again. ``queue`` has the class
``ExportQueue``, and ``worker`` has ``ExportWorker``. The states of destinations, which hinted handoff uses as well, are
in :mod:`pgcombine.runtime.destinations`.
"""
