"""Export queues: the changes of passes are delivered to other systems. None is lost, and each key's come in order.

*States.* A change is an entry of ``<export>_exports`` once its pass has committed. An entry is *waiting*. It is
*claimed*, with its bucket, while a worker's transaction delivers it, and *gone* when that transaction commits. It is
*quarantined* if the destination refuses it for its data, until an operator retries or drops it. The destination is
``up``, ``suspect``, ``down`` or ``paused``.

*Guarantees.* Each change is written as one entry, in the pass's transaction. Sequence numbers are drawn while the pass
has the bucket, so a key's numbers grow in the order in which its passes commit. An entry's commit is on disk before its
delivery, so no number is drawn twice after a crash. Delivery is at least once. With the exporters' guards it is
effectively once.

*Failures.* If a worker dies before its commit, its entries wait, and its claim ends with its connection. If a worker
was only thought dead and delivers late, that changes nothing at a destination that compares sequence numbers. A
destination that fails is left alone with back-off, and one worker tries again. A destination that hangs is given up
after the exporter's timeout. A worker without waiting entries sleeps, and the next pass with a change wakes it
(:mod:`pgcombine.runtime.wakeup`).

The modules: ``entries`` defines entries and exporters. ``postgres``, ``files``, ``webhook`` and ``functions`` are
exporters. ``delivery`` delivers a batch. ``queue`` and ``worker`` have the public classes. Hinted handoff shares the
states of destinations: :mod:`pgcombine.runtime.destinations`.
"""
