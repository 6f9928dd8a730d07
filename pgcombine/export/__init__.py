"""Export queues deliver the changes of passes to other systems.

*States.* A pass writes its changes as entries of ``<export>_exports``, where they *wait*. The export divides them into
buckets of its own. A worker *claims* such a bucket. In one transaction the worker deletes entries of the bucket and
delivers them. An entry that the destination refuses for its data is *quarantined*, until an operator retries or drops
it. A change of the export's owner ends the quarantine, too, and if the export compacts (option ``compact``), so does
the delivery of a later entry of the key. The destination is ``up``, ``suspect``, ``down`` or ``paused``.

*Guarantees.* Each change is written as one entry, in the pass's transaction. The pass draws sequence numbers while it
holds its bucket of the queue, so a key's numbers grow in the order in which its passes commit. The commit of an entry
is on disk before the entry is delivered, so that no crash takes back a delivered entry. Delivery is at least once. A
destination that compares sequence numbers ignores what was delivered before.

*Failures.* If a worker dies before its commit, its claim ends with its connection, and its entries wait again. After a
failure of the destination, one worker at a time tries again, at growing intervals. A worker without waiting entries
sleeps, and the next pass with a change wakes the worker (:mod:`pgcombine.runtime.wakeup`).

The modules: ``entries`` defines entries and exporters. ``postgres``, ``files``, ``webhook`` and ``functions`` are
exporters. ``signing`` and ``cloudevents`` make parts of the webhook's requests. ``delivery`` delivers a batch.
``verifying`` compares a table with the queue's values, and makes workers deliver keys again. ``queue`` has the class
``ExportQueue``, and ``worker`` has ``ExportWorker``. The states of destinations, which hinted handoff uses as well, are
in :mod:`pgcombine.runtime.destinations`.
"""
